// A deployment to Workers: settings of a person to what `wrangler` uploads. Everything that is missing or malformed is listed together.
import { reasonOf } from '#core/reason.ts';
import { isMap } from '#crds/shapes.ts';
import { AdmissionBindings, GatewayBindings, ReconcileBindings } from '../config/bindings.ts';
import { parsed, readEnvironment, SECRET } from '../config/variable.ts';
import { WORKERS, type WorkerName } from './workers.ts';

export interface Upload {
  readonly worker: WorkerName;
  /** The content of a `wrangler.json`, whose folder has the bundles. */
  readonly config: { readonly name: string; readonly [field: string]: unknown };
  /** Values that nobody can read again: `--secrets-file`. */
  readonly secrets: Readonly<Record<string, string>>;
}

type Settings = Readonly<Record<string, unknown>>;

/** Bindings whose settings are ids of Cloudflare's, and what stands in for them where settings are checked. */
const IDS: Readonly<Record<string, { readonly field: string; readonly stand: unknown }>> = {
  SNAPSHOTS: { field: 'kv_namespaces', stand: { get() {}, put() {}, delete() {} } },
  HYPERDRIVE: { field: 'hyperdrive', stand: { host: 'h', port: 1, user: 'u', password: 'p', database: 'd' } },
};

const BINDINGS = { reconcile: ReconcileBindings, admission: AdmissionBindings, gateway: GatewayBindings };

/** `{"reconcile":{…},"admission":{…},"gateways":{"name of the Worker":{…}}}`. Throws one error that lists every problem. */
export function toUploads(text: string): ReadonlyArray<Upload> {
  const given = parsed(text);
  if (!isMap(given)) throw new Error('the settings are not a JSON object');
  const problems: string[] = Object.keys(given)
    .filter((name) => !['reconcile', 'admission', 'gateways'].includes(name))
    .map((name) => `${name} is none of reconcile, admission, gateways`);
  const sections: Array<[WorkerName, string, unknown]> = [
    ['reconcile', WORKERS.reconcile.name, given.reconcile],
    ['admission', WORKERS.admission.name, given.admission],
    ...(isMap(given.gateways) ? Object.entries(given.gateways) : []).map(
      ([name, settings]): [WorkerName, string, unknown] => ['gateway', name, settings],
    ),
  ];
  const uploads = sections.flatMap(([worker, name, settings]) => {
    const own = isMap(settings) ? settings : {};
    const wrong = problemsOf(worker, own);
    problems.push(...wrong.map((problem) => `${name}: ${problem}`));
    return wrong.length > 0 ? [] : [toUpload(worker, name, own)];
  });
  if (problems.length > 0)
    throw new Error(`the settings are not right:\n${problems.map((line) => `  ${line}`).join('\n')}`);
  return uploads;
}

/** As the Worker itself reads its bindings. */
function problemsOf(worker: WorkerName, settings: Settings): ReadonlyArray<string> {
  const { variables } = BINDINGS[worker];
  const entries = Object.entries(settings);
  const unknown = entries.filter(([name]) => !(name in variables)).map(([name]) => `${name} is no setting of it`);
  const stands = entries.map(([name, value]) => [name, name in IDS && isId(value) ? IDS[name]?.stand : value]);
  try {
    readEnvironment({ variables }, Object.fromEntries(stands));
    return unknown;
  } catch (error) {
    return [
      ...reasonOf(error)
        .split('\n')
        .slice(1)
        .map((line) => line.trim()),
      ...unknown,
    ];
  }
}

const isId = (value: unknown): boolean => typeof value === 'string' && /^[0-9a-f]{32}$/.test(value);

function toUpload(worker: WorkerName, name: string, settings: Settings): Upload {
  // They have been read as texts.
  const entries = Object.entries(settings) as Array<[string, string]>;
  const ids = entries.flatMap(([binding, id]) => {
    const field = IDS[binding]?.field;
    return field === undefined ? [] : [[field, [{ binding, id }]]];
  });
  const texts = entries.filter(([binding]) => !(binding in IDS));
  return {
    worker,
    config: {
      ...{ ...WORKERS[worker], name, main: `${worker}.mjs`, observability: { enabled: true } },
      ...{ vars: Object.fromEntries(texts.filter(([binding]) => !SECRET.has(binding))), ...Object.fromEntries(ids) },
    },
    secrets: Object.fromEntries(texts.filter(([binding]) => SECRET.has(binding))),
  };
}
