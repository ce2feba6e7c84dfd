// Regular expressions of the product: each takes time in proportion to its text, whoever wrote that text.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'acorn';
import { transformSync } from 'esbuild';
import { checkSync } from 'recheck';
import { expect, test } from 'vitest';
import table from '../../functions/core/money/price-table.json' with { type: 'json' };

const root = join(import.meta.dirname, '../..');
const sources = globSync('{crds,functions,infra/{adapters,runtime,platforms}}/**/*.ts', { cwd: root }).filter(
  (path) => !/node_modules|\/test\/|\.test\.ts$|^infra\/platforms\/local\//.test(path),
);

/** Without one of these, or two of those, an expression reads a few characters from each place. */
const ENDLESS = /[*+]|,\}/;
const RANGES = /,\d+\}.*,\d+\}/;

type Pattern = Pick<RegExp, 'source' | 'flags'>;

type Module = Readonly<Record<string, (...args: unknown[]) => unknown>>;

/** What makes a file's other expressions. Some are made when the file is loaded. */
const MAKERS: Readonly<Record<string, (file: Module) => unknown>> = {
  'functions/core/money/price-list.ts': ({ listingOf }) => Object.keys(table.lists).map((id) => listingOf?.(id, '?')),
  'functions/gateway/wire/prompt/higher-rates.ts': () => {},
  'functions/gateway/wire/prompt/unmetered-features.ts': () => {},
};

/** Expressions that are written in a file, and whether it makes others. */
function readFile(path: string): { readonly written: ReadonlyArray<Pattern>; readonly makes: boolean } {
  const written: Pattern[] = [];
  const tokens: string[] = [];
  const { code } = transformSync(readFileSync(join(root, path), 'utf8'), { loader: 'ts' });
  parse(code, {
    ecmaVersion: 'latest',
    sourceType: 'module',
    onToken: ({ type, value }: { readonly type: { readonly label: string }; readonly value?: unknown }) => {
      tokens.push(typeof value === 'string' ? value : type.label);
      if (value !== null && typeof value === 'object' && 'pattern' in value && 'flags' in value)
        written.push({ source: String(value.pattern), flags: String(value.flags) });
    },
  });
  return { written, makes: tokens.some((token, at) => token === 'RegExp' && tokens[at - 1] === 'new') };
}

/** Expressions that a file makes when it is loaded, and then by its maker. */
async function madeBy(path: string): Promise<ReadonlyArray<Pattern>> {
  const made: Pattern[] = [];
  const own = globalThis.RegExp;
  const construct = (target: typeof RegExp, args: ConstructorParameters<typeof RegExp>) => {
    const expression = Reflect.construct(target, args);
    made.push(expression);
    return expression;
  };
  globalThis.RegExp = new Proxy(own, { construct });
  try {
    // A fresh one: its expressions were made before.
    MAKERS[path]?.(await import(/* @vite-ignore */ `${join(root, path)}?made`));
  } finally {
    globalThis.RegExp = own;
  }
  return made;
}

const STEPS_ONLY = { attackTimeout: null, incubationTimeout: null, seedingTimeout: null };

/** Why an expression may take longer; undefined: its time grows with its text alone. */
function problemOf({ source, flags }: Pattern): string | undefined {
  if (!ENDLESS.test(source) && !RANGES.test(source)) return undefined;
  // Expressions that its automata cannot express are tried with random texts: the same ones each time, and with bounds of
  // steps. A bound of time would find a safe expression slow on a busy machine.
  const found = checkSync(source, flags, { ...STEPS_ONLY, timeout: 120_000, randomSeed: 1 });
  if (found.status === 'safe') return undefined;
  return `${found.status === 'vulnerable' ? found.complexity.summary : found.error.kind}: /${source}/${flags}`;
}

test('every regular expression takes time in proportion to its text', { timeout: 300_000 }, async () => {
  const files = sources.map((path) => ({ path, ...readFile(path) }));
  const makers = files.filter(({ makes }) => makes).map(({ path }) => path);
  expect(makers.toSorted()).toEqual(Object.keys(MAKERS).toSorted());
  const written = files.flatMap((file) => file.written);
  expect(written.length).toBeGreaterThan(150);
  const made: Pattern[] = [];
  for (const path of makers) made.push(...(await madeBy(path)));
  expect(made.length).toBeGreaterThan(5);
  const all = new Map([...written, ...made].map((one) => [`/${one.source}/${one.flags}`, one]));
  expect([...all.values()].map(problemOf).filter((problem) => problem !== undefined)).toEqual([]);
});
