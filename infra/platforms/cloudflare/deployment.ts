// A deployment to Workers, made from a person's settings for `wrangler`. All that is missing or malformed is listed
// together.
import { reasonOf } from '#core/failure/error-text.ts';
import { isMap } from '#crds/validation/json-shapes.ts';
import { AdmissionBindings, GatewayBindings, ReconcileBindings } from '../../runtime/config/bindings.ts';
import { readEnvironment, SECRET } from '../../runtime/config/variable.ts';
import { WORKERS, type WorkerName } from './workers.ts';

export interface Upload {
  readonly worker: WorkerName;
  /** The content of a `wrangler.json`, whose folder has the bundles. */
  readonly config: { readonly name: string; readonly [field: string]: unknown };
  /** Values for `--secrets-file`, which Cloudflare shows to nobody. */
  readonly secrets: Readonly<Record<string, string>>;
}

type Settings = Readonly<Record<string, unknown>>;

/** Bindings whose settings are ids of Cloudflare, with the placeholders that are used to check settings. */
const IDS: Readonly<Record<string, { readonly field: string; readonly stand: unknown }>> = {
  SNAPSHOTS: { field: 'kv_namespaces', stand: { get() {}, put() {}, delete() {} } },
  HYPERDRIVE: { field: 'hyperdrive', stand: { host: 'h', port: 1, user: 'u', password: 'p', database: 'd' } },
};

const BINDINGS = { reconcile: ReconcileBindings, admission: AdmissionBindings, gateway: GatewayBindings };

/** Values of the sample in docs/install/workers.md that each deployment must replace. */
const SAMPLE: ReadonlySet<unknown> = new Set([
  'https://api.cluster.example.com',
  'the token of reconcile',
  'the token of admission',
  'a-token-of-your-own-choice',
  'an-unguessable-path-segment',
  '0123456789abcdef0123456789abcdef',
  'fedcba9876543210fedcba9876543210',
  'https://sample.upstash.io',
  'a token that may write',
  '{"openai":{"apiKey":"sk-change-me"}}',
]);

/**
 * `{"reconcile":{…},"admission":{…},"gateways":{"name of the Worker":{…}}}`. Throws one error that lists every problem.
 */
export function toUploads(text: string, file = 'the settings'): ReadonlyArray<Upload> {
  const given = parseSettings(text, file);
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
  problems.push(...disagreements(given));
  if (problems.length > 0)
    throw new Error(`the settings are not right:\n${problems.map((line) => `  ${line}`).join('\n')}`);
  return uploads;
}

/** The text as a map. No message quotes the text, because it has secrets. */
function parseSettings(text: string, file: string): Settings {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (error) {
    const lines = text.slice(0, errorPosition(text, reasonOf(error))).split('\n');
    const place = `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`;
    throw new Error(`${file}: is not JSON at ${place}`);
  }
  if (!isMap(given)) throw new Error(`${file}: is not a JSON object`);
  return given;
}

/**
 * The position of an unexpected token, which its message lacks: the end of the shortest prefix with the same error.
 */
function errorPosition(text: string, message: string): number {
  const [, position] = / at position (\d+)/.exec(message) ?? [];
  if (position !== undefined) return Number(position);
  for (let end = 1; end <= text.length; end += 1) {
    try {
      JSON.parse(text.slice(0, end));
    } catch (error) {
      if (reasonOf(error).startsWith('Unexpected token')) return end - 1;
    }
  }
  return text.length;
}

/** Settings that must be the same in several Workers. */
function disagreements({ reconcile, admission, gateways }: Settings): ReadonlyArray<string> {
  if (!isMap(reconcile)) return [];
  const problems: string[] = [];
  const sent = firstOf(isMap(admission) ? admission.RECONCILE_TOKEN : undefined);
  const accepted = partsOf(reconcile.RECONCILE_TOKEN);
  if (sent !== undefined && accepted.length > 0 && !accepted.includes(sent))
    problems.push(
      `${WORKERS.admission.name}: RECONCILE_TOKEN is none of those of ${WORKERS.reconcile.name}, which would refuse every trigger: write the same into both`,
    );
  for (const [name, settings] of Object.entries(isMap(gateways) ? gateways : {}))
    if (isMap(settings) && settings.SNAPSHOTS !== undefined && settings.SNAPSHOTS !== reconcile.SNAPSHOTS)
      problems.push(
        `${name}: SNAPSHOTS is another namespace than that of ${WORKERS.reconcile.name}, which writes the snapshots: write the same into both`,
      );
  return problems;
}

const partsOf = (value: unknown): ReadonlyArray<string> =>
  typeof value === 'string' ? value.split(',').map((part) => part.trim()) : [];
const firstOf = (value: unknown): string | undefined => partsOf(value)[0];

/** Reads the bindings in the same way as the Worker. */
function problemsOf(worker: WorkerName, settings: Settings): ReadonlyArray<string> {
  const { variables } = BINDINGS[worker];
  const entries = Object.entries(settings);
  const more = [
    ...entries.filter(([name]) => !(name in variables)).map(([name]) => `${name} is no setting of it`),
    ...entries
      .filter(([, value]) => SAMPLE.has(value))
      .map(([name]) => `${name} has the value of the sample: write your own`),
  ];
  const stands = entries.map(([name, value]) => [name, name in IDS && isId(value) ? IDS[name]?.stand : value]);
  try {
    readEnvironment({ variables }, Object.fromEntries(stands));
    return more;
  } catch (error) {
    return [
      ...reasonOf(error)
        .split('\n')
        .slice(1)
        .map((line) => line.trim()),
      ...more,
    ];
  }
}

const isId = (value: unknown): boolean => typeof value === 'string' && /^[0-9a-f]{32}$/.test(value);

function toUpload(worker: WorkerName, name: string, settings: Settings): Upload {
  // The values were read as texts.
  const entries = Object.entries(settings) as Array<[string, string]>;
  const ids = entries.flatMap(([binding, id]) => {
    const field = IDS[binding]?.field;
    return field === undefined ? [] : [[field, [{ binding, id }]]];
  });
  const texts = entries.filter(([binding]) => !(binding in IDS));
  return {
    worker,
    config: {
      ...WORKERS[worker],
      name,
      main: `${worker}.mjs`,
      observability: { enabled: true },
      vars: Object.fromEntries(texts.filter(([binding]) => !SECRET.has(binding))),
      ...Object.fromEntries(ids),
    },
    secrets: Object.fromEntries(texts.filter(([binding]) => SECRET.has(binding))),
  };
}
