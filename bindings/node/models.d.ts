/* `perilune/models`: the patterns on globals, each below a node, whether or not there is anything yet. */
import {Columns, Hash, Network, Node, Records, Relations, SetModel} from './index';

export function set(place: Node): SetModel;
export function hash(place: Node): Hash;
export function records(place: Node): Records;
export function columns(place: Node): Columns;
export function relations(place: Node): Relations;
export function network(place: Node): Network;
export {SetModel as Set, Hash, Records, Columns, Relations, Network};
