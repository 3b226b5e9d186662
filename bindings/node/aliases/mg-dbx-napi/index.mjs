export {server, mglobal, mcursor, mclass, default} from 'perilune/mg-dbx-napi';
