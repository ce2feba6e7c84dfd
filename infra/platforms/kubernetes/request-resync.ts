// The program of the CronJob: it requests a resync from the reconciler, within seconds.
import { setTimeout as pause } from 'node:timers/promises';
import { TriggerEnvironment } from '../../runtime/config/environments.ts';
import { readEnvironment } from '../../runtime/config/variable.ts';
import { main, print } from '../../runtime/node/process.ts';
import { resyncUntilDone } from '../../runtime/triggers/resync.ts';

/** Milliseconds: a resync ends within two and a half minutes. */
const TIMEOUT = 150_000;

main(async () => {
  const { RECONCILE_URL: url, RECONCILE_TOKEN: [token] = [] } = readEnvironment(TriggerEnvironment, process.env);
  const ask = async () => {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(url, { method: 'POST', headers, signal: AbortSignal.timeout(TIMEOUT) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${text}`);
    return text;
  };
  print(await resyncUntilDone({ ask, now: Date.now, pause }));
});
