// Is any key or password in what reconcile shows anybody? Asked of every harness, after every test that stood on one.
// Light, and without the test runner: every test file loads it, and benches stand on harnesses too.
import type { KubeObject } from '#core/ports/cluster.ts';

/** What a harness knows of itself. */
export interface RunOutput {
  /** Every key and password that ever was in a Secret. */
  readonly values: ReadonlySet<string>;
  /** Reports, plans, logs: whatever people get to see, as text. */
  output(): string;
  objects(): ReadonlyArray<KubeObject>;
  /** It stands on a cluster that many tests share: what it says is searched after each. */
  readonly lasts: boolean;
}

const harnesses: RunOutput[] = [];

/** Outside of tests nobody searches, so nothing is kept. */
export function searchAfterTest(harness: RunOutput): void {
  if (process.env.VITEST !== undefined) harnesses.push(harness);
}

/** What the harnesses since the last call have shown of their own secrets. */
export function takeShown(): ReadonlyArray<string> {
  const all = harnesses.splice(0);
  harnesses.push(...all.filter(({ lasts }) => lasts));
  return all.flatMap(shownBy);
}

/** Shorter ones are found in words. */
const SHORTEST = 8;
const SECRET_KEYS = /^(key|password|apiKey|token|OPENAI_API_KEY)$/;

/** The cluster, unchanged; what is written into its Secrets is noted. */
export function noting<T extends object>(cluster: T, values: Set<string>): T {
  return new Proxy(cluster, {
    get: (target, name) => {
      const found = Reflect.get(target, name);
      if (typeof found !== 'function') return found;
      return (...args: readonly unknown[]) => {
        if ((args[0] as { plural?: unknown } | undefined)?.plural === 'secrets')
          for (const value of args.flatMap(valuesIn)) values.add(value);
        return found.apply(target, args);
      };
    },
  });
}

/** What must not be shown of a Secret, or of a patch of one. */
export function valuesIn(argument: unknown): string[] {
  const { data } = (argument ?? {}) as { data?: Readonly<Record<string, unknown>> };
  return Object.entries(data ?? {}).flatMap(([entry, encoded]) => {
    if (!SECRET_KEYS.test(entry) || typeof encoded !== 'string') return [];
    const value = Buffer.from(encoded, 'base64').toString();
    return value.length < SHORTEST ? [] : [value];
  });
}

/** The one place that may show a key is the `keyValue` of its own status. */
export function toOpenText(objects: ReadonlyArray<KubeObject>): string {
  const open = objects
    .filter(({ kind }) => kind !== 'Secret')
    .map((object) => {
      const { keyValue: _, ...status } = (object.status ?? {}) as Record<string, unknown>;
      return object.kind === 'VirtualKey' ? { ...object, status } : object;
    });
  return JSON.stringify(open);
}

/** There may be hundreds of minted keys: those are looked up among what looks like one. */
export function findShown(values: ReadonlySet<string>, text: string): string[] {
  const keys = new Set(text.match(/sk-[0-9A-Za-z]{49}/g));
  const isShown = (value: string) => (/^sk-[0-9A-Za-z]{49}$/.test(value) ? keys.has(value) : text.includes(value));
  return [...values].filter(isShown);
}

const shownBy = ({ values, output, objects }: RunOutput): string[] =>
  findShown(values, `${output()}\n${toOpenText(objects())}`);
