/* `perilune/documents`: documents of JSON. */
import {Document, ModelOptions, Node} from './index';

/** What lies below a node of the database, whether or not there is anything yet. */
export function document(place: Node, options?: ModelOptions): Document;
export {Document};
