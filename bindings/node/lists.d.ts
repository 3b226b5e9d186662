/* `perilune/lists`: lists of documents. */
import {List, ModelOptions, Node} from './index';

/** What lies below a node of the database, whether or not there is anything yet. */
export function list(place: Node, options?: ModelOptions): List;
export {List};
