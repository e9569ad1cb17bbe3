package tree

// Factor is how many branches an operation changes at most: for all trees Q and O of |Q| and |O| nodes, with the match count MC and the edit
// distance TED,
//
//	max(|Q|,|O|) - MC <= 3 TED
//
// Proof. A node's label is part of its own branch and of one other's at most, that of the sibling before it, else its parent, so a relabelling
// loses 2 branches. Where a node is inserted, the node before it (sibling or parent) and the last of the children it takes get
// another one: the tree loses 2 and gains 3. A deletion is that backwards: it loses 3. So at least |Q| - 3 TED branches of Q survive in O, and the
// same backwards with |O|. Where the root is deleted there is a forest on the way, whose trees are siblings. QED
//
// It takes the occurrences: with distinct branches only, a tree that has one twice has fewer keywords than nodes.
// (Yang, Kalnis and Tung, SIGMOD 2005, have 5 for the symmetric difference, which is this bound's sum of 2 and 3.)
const Factor = 3

// Threshold is the certificate: trees with a smaller match count have at least the edit distance tau from a query of so many nodes. Where it
// is not above 0, no count says so.
func Threshold(query, tau int) int { return query - Factor*(tau-1) }
