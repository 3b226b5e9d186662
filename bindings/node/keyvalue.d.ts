/* `perilune/keyvalue`: documents by key. */
import {KeyValue, ModelOptions, Node} from './index';

/** What lies below a node of the database, whether or not there is anything yet. */
export function keyvalue(place: Node, options?: ModelOptions): KeyValue;
export {KeyValue};
