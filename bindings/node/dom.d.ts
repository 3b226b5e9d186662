/* `perilune/dom`: documents of XML. */
import {Dom, DomNode, Node} from './index';

/** The document below a node of the database, whether or not there is one yet. */
export function dom(place: Node): Dom;
export {Dom, DomNode};
