/* `perilune/graph`: graphs of vertices and edges, each below a node. */
import {Graph, Node, Path, Traversal} from './index';

/** Makes a graph below a node without children; `weight` is the property of edges that is their weight. */
export function create(place: Node, options?: {weight?: string}): Graph;
/** Opens the graph below a node; of a node of a snapshot, as it was then. */
export function open(place: Node): Graph;
export {Graph, Path, Traversal};
