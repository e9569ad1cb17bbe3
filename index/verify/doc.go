// Package verify turns match counts into exact answers on the CPU: edit distances, the verification of sequence
// candidates (Algorithm 2 of the GENIE paper, generalised from the nearest to the k nearest) and the certificate
// that says when the verified candidates are the true answer (Theorem 5.2).
//
// # What is promised
//
// The hits of a sequence query Q are ordered by
//
//	(edit distance ascending, match count descending, object id ascending)
//
// which is a total order of all objects. A certified answer is the first k objects of the index in that order,
// ties included. An answer without certificate is the first k of the candidates in that order.
//
// # Measures
//
// What follows is of sequences. [Scores] is the same for what objects hold in a column (package forward): measures of sets, BM25, edit distances
// of strings, trees and graphs, distances of vectors. Its order is (score, match count descending, object id ascending), the better score
// first. [Measures] lists them; what a count proves of each, packages similarity, tree and graph prove. A new one is a measure and a line in that table.
//
// # The bound
//
// Every sequence is padded with n-1 distinct sentinels on both sides before it is cut into n-grams, so S has
// |S| + n - 1 grams, and MC(Q,S), the size of the multiset intersection (Lemma 5.1), satisfies
//
//	MC(Q,S) >= max(|Q|,|S|) + n - 1 - n * ed(Q,S)                                      (1)
//
// Proof (Theorem 5.1 with padding). Take an edit script of ed(Q,S) operations from Q to S. It applies to the padded
// Q as well, whose sentinels it leaves alone. A gram of padded Q survives when the script neither changes one of
// its n symbols nor inserts between two of them; the grams that survive stand, at different places, in padded S,
// so they are in the intersection. A substitution or deletion hits one symbol, which at most n grams contain; an
// insertion hits one gap, which at most n-1 grams span. So at least |Q| + n - 1 - n*ed grams of Q survive. The script
// read backwards turns S into Q, which gives the same with |S|. One of the two is the maximum. QED
//
// A missing text is indexed without any gram, not even those of its padding, and compares as the empty string. Then (1)
// asks for MC >= (n-1)(1-|Q|), which 0 satisfies unless Q is empty. An empty Q shares grams only with empty texts,
// because each of its grams joins a sentinel of the left to one of the right; their distance is 0, and what follows
// needs no bound to see that nothing precedes them.
//
// The paper's bound, without padding, has -n+1 in place of n-1: it says nothing about strings shorter than n, and
// 2(n-1) less about all others.
//
// # The verification
//
// Candidates come in the order (count descending, id ascending), as every engine returns them. Let tau be the
// distance of the k-th best so far, infinite before there are k. A candidate S with
//
//	MC(Q,S) < theta,   theta = |Q| + n - 1 - n*(tau - 1)                               (2)
//
// has ed(Q,S) > tau - 1 by (1), that is ed(Q,S) >= tau. It comes after all k best in the total order: where the
// distance is equal, its count is at most theirs, and where that is equal too its id is larger, for it comes later
// among the candidates. The same holds for every candidate behind it, so the loop stops there (count filter). A
// candidate whose length differs from |Q| by tau or more has distance >= tau and is skipped for the same reason
// (length filter), and so is one whose distance is found to reach tau (bounded comparison).
//
// # The certificate
//
// Let c be the count of the K-th candidate, 0 when fewer than K came back. An object that is not among the K
// candidates has a count of at most c, and when its count is c its id is larger than the K-th's, so it comes after
// all candidates in the order (count, id). Therefore the k best of the candidates are the true answer when there
// are k of them and
//
//	c < theta = |Q| + n - 1 - n*(tau - 1)                                              (3)
//
// because then (2) holds for every object that was not retrieved: none is nearer than tau, and those as far as tau
// lose the tie by count or id. Theorem 5.2 asks for c < |Q| + n - 1 - n*tau, which makes every other object strictly
// farther. (3) is weaker by n and enough, because ties are part of the total order here while the paper
// leaves them open; in particular the answer is certified whenever the count filter stopped the loop. The answer is
// also certified when every object of the index was a candidate.
//
// Where theta <= 0 no count can certify, however large K is, since counts are not negative; [SequenceRescorer.Scan]
// then looks at every text of the index. An object that was not retrieved comes after all candidates in the order
// (count, id), as said above, so with the k best of these in hand it has to be nearer than tau to be a hit: the scan is bounded
// by tau - 1 ([SequenceRescorer.Within]), which spares it the many objects as far as tau and their match counts.
package verify
