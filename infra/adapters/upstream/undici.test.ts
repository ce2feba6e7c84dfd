import { createUpstream } from './undici.ts';
import { promisesOfUpstream } from './upstream.promises.ts';

promisesOfUpstream('undici', createUpstream());
