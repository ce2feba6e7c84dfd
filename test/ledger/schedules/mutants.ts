// Mutants of the ledger, each broken on purpose in a bundle of its own, which the search must find.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import type { Scene } from './course.ts';

const ROOT = join(import.meta.dirname, '../../..');

export interface Edit {
  readonly file: string;
  /** A line that occurs exactly once in the file. */
  readonly line: string;
  readonly becomes: string;
}

type Search = typeof import('./search.ts');

/** The search over the code with these edits. Throws where a line does not occur exactly once: then name another. */
export async function searchIn(edits: ReadonlyArray<Edit>): Promise<{ readonly search: Search; remove(): void }> {
  const texts = new Map<string, string>();
  for (const { file, line, becomes } of edits) {
    const text = texts.get(file) ?? readFileSync(join(ROOT, file), 'utf8');
    if (text.split(line).length !== 2)
      throw new Error(`${file} has not exactly one line "${line}": break it elsewhere`);
    texts.set(
      file,
      text.replace(line, () => becomes),
    );
  }
  const breaking: Plugin = {
    name: 'breaking',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const contents = texts.get(relative(ROOT, path));
        return contents === undefined ? undefined : { contents, loader: 'ts' };
      });
    },
  };
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-mutant-'));
  const outfile = join(folder, 'search.mjs');
  await build({
    ...{ entryPoints: [join(import.meta.dirname, 'search.ts')], absWorkingDir: ROOT, outfile, plugins: [breaking] },
    ...{ bundle: true, platform: 'node', format: 'esm', logLevel: 'silent' },
  });
  const search: Search = await import(pathToFileURL(outfile).href);
  return { search, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

const LEDGER = 'functions/core/ledger';
const MEMORY = 'infra/adapters/memory';
const DOUBLES = 'test/doubles';

export interface Mutant {
  readonly name: string;
  readonly edits: ReadonlyArray<Edit>;
  /** Faults that reveal it soon. Absent: those of the seeds. */
  readonly faults?: Scene['faults'];
}

/** Mutants that lose or give away money, each against a law of the ledger. */
export const MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: 'a store that does not compare epochs',
    faults: { restore: 2 },
    edits: [
      {
        file: `${MEMORY}/store.ts`,
        line: "if (call.epoch !== life.epoch) return { outcome: 'epoch', now, epoch: life.epoch };",
        becomes: '',
      },
    ],
  },
  {
    name: 'a store that does not see that it has gone back in time',
    edits: [{ file: `${MEMORY}/store.ts`, line: 'if (hasGoneBack(call, life))', becomes: 'if (false)' }],
  },
  {
    name: 'a rebuild that forgets live holds',
    edits: [{ file: `${MEMORY}/store.ts`, line: 'holds.register(registration, now);', becomes: ';' }],
  },
  {
    name: 'books that take an entry twice',
    edits: [{ file: `${DOUBLES}/books.ts`, line: 'if (entries.has(key)) return;', becomes: '' }],
  },
  {
    name: 'a release that refunds a settled hold',
    edits: [
      {
        file: `${MEMORY}/holds.ts`,
        line: "if (before?.state === 'settled') return { outcome: 'settled' };",
        becomes:
          "if (before?.state === 'settled') { charge(before.counters, -before.cost); return { outcome: 'settled' }; }",
      },
      {
        file: `${LEDGER}/settlements.ts`,
        line: "live.ending !== undefined) return live?.ending;\n      live.outcome = 'released';",
        becomes: "false) return undefined;\n      live.outcome = 'released';",
      },
    ],
  },
  {
    name: 'a settlement after an expiry that is not booked',
    edits: [
      {
        file: `${LEDGER}/settlements.ts`,
        line: 'booking.add(toCorrection(entry, answer.charged), epoch);',
        becomes: '',
      },
    ],
  },
  {
    name: 'a settlement that is not written before the reply ends',
    faults: { die: 1 },
    edits: [
      { file: `${LEDGER}/settlements.ts`, line: 'return written.catch(', becomes: 'return Promise.resolve().catch(' },
    ],
  },
  {
    name: 'a restart that does not read the outbox',
    faults: { die: 1 },
    edits: [{ file: `${LEDGER}/ledger.ts`, line: 'records ??= await outbox.recover();', becomes: 'records ??= [];' }],
  },
  {
    name: 'a counter that is absent and taken for zero',
    edits: [
      {
        file: `${LEDGER}/counter-sums.ts`,
        line: 'load: { ...sum, booked',
        becomes: 'load: { ...sum, spent: 0n, booked',
      },
    ],
  },
  {
    name: 'a refusal without an answer that keeps what it may have taken',
    edits: [
      {
        file: `${LEDGER}/hold.ts`,
        line: 'deps.settlements.releaseUnknown(attempt.asked.operation, attempt.written);',
        becomes: ';',
      },
    ],
  },
];
