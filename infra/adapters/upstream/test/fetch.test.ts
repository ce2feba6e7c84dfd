import { createFetchUpstream } from '../fetch.ts';
import { promisesOfUpstream } from './upstream.promises.ts';

const timer = (millis: number, callback: () => void) => {
  const running = setTimeout(callback, millis);
  return () => clearTimeout(running);
};

promisesOfUpstream('fetch', createFetchUpstream({ fetch, timer }));
