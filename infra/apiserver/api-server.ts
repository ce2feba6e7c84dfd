// A small Kubernetes API server in this process, kept in a SQLite file, for trying and testing only.
import { randomUUID } from 'node:crypto';
import { createAdmission } from './admission/admission.ts';
import { createCall } from './admission/call-webhook.ts';
import { createCustomResourceCleanup } from './controllers/custom-resource-cleanup.ts';
import { createEventExpiry } from './controllers/event-expiry.ts';
import { createGarbageCollector } from './controllers/garbage-collector.ts';
import { bootstrapNamespaces, createNamespaceController } from './controllers/namespace-controller.ts';
import type { Deps } from './deps.ts';
import { createOpenApi } from './discovery/openapi.ts';
import { createAuthenticate } from './request/authenticate.ts';
import { createRegistry } from './resources/registry.ts';
import { type Listener, listen, type Tls } from './serve/listen.ts';
import { createStore, type StoreOptions } from './store/store.ts';

export type ApiServerOptions = StoreOptions & {
  /** On 127.0.0.1; 0 takes any free port. */
  readonly port: number;
  /** PEM. */
  readonly tls: Tls;
  /** The one bearer token; its holder may do everything. */
  readonly token: string;
  /** The end of a sentence about what this server does not do: what to do instead. Default: `use a real cluster`. */
  readonly instead?: string;
};

export type ApiServer = ReturnType<typeof createApiServer>;

export function createApiServer(options: ApiServerOptions) {
  const { port, tls, token, log, instead = 'use a real cluster' } = options;
  const { now } = Date;
  const store = createStore(options);
  const registry = createRegistry(store, log);
  const webhooks = createCall(store);
  const admission = createAdmission({ store, call: webhooks.call, newUid: randomUUID, now });
  const deps: Deps = { store, registry, admission, log, now, newUid: randomUUID };
  const controllers = [
    createGarbageCollector(deps),
    createNamespaceController(deps),
    createCustomResourceCleanup(deps),
    createEventExpiry(deps),
  ];
  const serving = { deps, openApi: createOpenApi(registry.all), authenticate: createAuthenticate(token), instead };
  let listener: Listener | undefined;
  async function stop(): Promise<void> {
    await listener?.close();
    await Promise.all(controllers.map((controller) => controller.stop()));
    webhooks.close();
    store.close();
  }

  return {
    /** `https://127.0.0.1:PORT`; the port is known once it has started. */
    get url() {
      return `https://127.0.0.1:${listener?.port ?? port}`;
    },
    /**
     * Resolves when requests are served. Throws one sentence when another process runs on the same file, or the port is
     * taken.
     */
    async start() {
      try {
        store.open();
        await bootstrapNamespaces(deps);
        for (const controller of controllers) controller.start();
        listener = await listen(serving, { port, tls });
      } catch (cause) {
        await stop();
        throw cause;
      }
    },
    /** Ends watches, lets requests finish, closes the file. */
    stop,
  };
}
