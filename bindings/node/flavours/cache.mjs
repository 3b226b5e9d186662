/* `import ... from 'perilune/cache'`: what cache.node exports. */
import {createRequire} from 'node:module';

const flavour = createRequire(import.meta.url)('../lib/nodem/cache.js');

export const {Cache} = flavour;
export default flavour;
