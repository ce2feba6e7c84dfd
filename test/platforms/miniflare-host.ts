// The process in which miniflare runs the Workers: started with NODE_EXTRA_CA_CERTS, without which workerd trusts no
// private CA.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { Log, LogLevel, Miniflare } from 'miniflare';
import { reasonOf } from '#core/failure/error-text.ts';
import { WORKERS } from '../../infra/platforms/cloudflare/workers.ts';
import type { HostAnswer, HostOrder, ListeningWorker, WorkerOfTest } from './miniflare.ts';

class Quiet extends Log {
  override log(message: string): void {
    process.stderr.write(`${message}\n`);
  }
}

const workers = JSON.parse(process.argv[2] ?? '[]') as ReadonlyArray<WorkerOfTest>;
const { port = 0, tls } = JSON.parse(process.argv[3] ?? '{}') as ListeningWorker;
const miniflare = new Miniflare({
  host: '127.0.0.1',
  port,
  ...(tls !== undefined && { https: true, httpsCert: tls.cert, httpsKey: tls.key }),
  log: new Quiet(LogLevel.WARN),
  workers: workers.map(({ name, scriptPath, bindings, services, hyperdrives = {}, namespaces = {}, isDirect }) => ({
    name,
    modules: [{ type: 'ESModule', path: basename(scriptPath), contents: readFileSync(scriptPath, 'utf8') }],
    compatibilityDate: WORKERS[name].compatibility_date,
    compatibilityFlags: [...WORKERS[name].compatibility_flags],
    hyperdrives: { ...hyperdrives },
    kvNamespaces: Object.keys(namespaces),
    bindings,
    serviceBindings: services,
    ...(isDirect && { unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }] }),
  })),
});

interface ScheduledRun {
  scheduled(event: { readonly cron: string }): Promise<{ readonly outcome: string }>;
}

const say = (answer: HostAnswer) => process.send?.(answer);

process.on('message', (order: HostOrder) => {
  carryOut(order).catch((error: unknown) => say({ error: reasonOf(error) }));
});
process.on('disconnect', () => process.exit(0));

async function carryOut(order: HostOrder): Promise<void> {
  if (order.order === 'stop') {
    await miniflare.dispose();
    process.exit(0);
  }
  // Its types come from a package that we do not have.
  const worker = (await miniflare.getWorker(order.worker)) as unknown as ScheduledRun;
  const { outcome } = await worker.scheduled({ cron: '* * * * *' });
  say({ outcome });
}

fill().then(
  (addresses) => say(addresses),
  (error: unknown) => say({ error: reasonOf(error) }),
);

interface Namespace {
  put(key: string, value: string): Promise<void>;
}

async function fill() {
  const { origin: url } = await miniflare.ready;
  for (const { name, namespaces = {} } of workers) {
    for (const [binding, entries] of Object.entries(namespaces)) {
      // Its types come from a package that we do not have.
      const namespace = (await miniflare.getKVNamespace(binding, name)) as unknown as Namespace;
      for (const [key, value] of Object.entries(entries)) await namespace.put(key, value);
    }
  }
  const own = workers.find(({ isDirect }) => isDirect)?.name;
  const direct = own === undefined ? url : (await miniflare.unsafeGetDirectURL(own)).origin;
  return { url, direct };
}
