package graph

// Factor is how many stars an operation changes at most, where no vertex has more neighbours than degree: for all graphs Q and O of |Q| and |O|
// vertices, with the match count MC, the edit distance GED, and the smaller of both largest degrees,
//
//	max(|Q|,|O|) - MC <= Factor(degree) GED = max(2, 1 + degree) GED
//
// Proof. A script can be put into this order: delete edges; delete vertices, which have none by then; relabel; insert vertices; insert edges. Where
// labels change, the graph has edges that both Q and O have, so a vertex has at most degree neighbours, and its own star and theirs
// change. An edge that comes or goes changes the stars of its two ends; a vertex without edges has one star. So at least |Q| - Factor GED stars of Q
// survive in O, and the same backwards with |O|. QED
//
// 2 alone fails where labels of vertices with neighbours change. Of an object that was not retrieved nothing is known, so the query's degree
// takes its place, which is no smaller than the minimum.
func Factor(degree int) int { return max(2, 1+degree) }

// Threshold is the certificate: graphs with a smaller match count have at least the edit distance tau from a query of so many vertices, whose
// largest degree it is. Where it is not above 0, no count says so.
func Threshold(query, degree, tau int) int { return query - Factor(degree)*(tau-1) }
