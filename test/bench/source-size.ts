// Size of the source: lines, files and floors of each room, without tests, promises, fixtures and cases.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { importsOf, ROOT } from '../rules/imports.ts';
import { table } from './table.ts';

/** Folders of each room; a file belongs to the first room that contains it. */
const ROOMS: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
  ['crds', ['crds/']],
  ['functions/admission', ['functions/admission/']],
  ['functions/core/rules', ['functions/core/rules/']],
  ['functions/core/ledger', ['functions/core/ledger/']],
  ['functions/core (rest)', ['functions/core/']],
  ['functions/reconcile', ['functions/reconcile/']],
  ['functions/gateway', ['functions/gateway/']],
  ['infra/adapters', ['infra/adapters/']],
  ['infra/apiserver', ['infra/apiserver/']],
  ['infra/platforms/local', ['infra/platforms/local/']],
  [
    'infra/platforms/kubernetes, knative, cloudflare',
    ['infra/platforms/kubernetes/', 'infra/platforms/knative/', 'infra/platforms/cloudflare/'],
  ],
  ['infra (rest)', ['infra/']],
];

const NOT_SOURCE = /\.(test|promises|fixture)\.ts$|\/(cases|kubectl-cases|golden)\//;

export async function benchHouse(): Promise<string> {
  const tracked = execFileSync('git', ['ls-files', 'crds', 'functions', 'infra'], { cwd: ROOT, encoding: 'utf8' });
  const files = tracked.split('\n').filter((file) => /\.(ts|lua)$/.test(file) && !NOT_SOURCE.test(file));
  const rows = ROOMS.map(([room, folders], place) => {
    const isOf = (file: string, own: ReadonlyArray<string>) => own.some((folder) => file.startsWith(folder));
    const before = ROOMS.slice(0, place).flatMap(([, earlier]) => earlier);
    const own = files.filter((file) => isOf(file, folders) && !isOf(file, before));
    return { room, lines: sum(own.map(linesOf)), files: own.length, floors: floorsOf(own, folders) };
  });
  const all = { lines: sum(rows.map(({ lines }) => lines)), files: sum(rows.map((row) => row.files)) };
  return table(
    ['room', 'lines', 'files', 'floors'],
    [
      ...rows.map((row) => [row.room, `${row.lines}`, `${row.files}`, `${row.floors}`]),
      ['all', `${all.lines}`, `${all.files}`, ''],
    ],
  );
}

/** The longest path of imports within a room; a folder below it counts once, however many of its files are on the path. */
function floorsOf(files: ReadonlyArray<string>, folders: ReadonlyArray<string>): number {
  const stopOf = (file: string): string => {
    const folder = folders.find((one) => file.startsWith(one)) ?? '';
    return folder + (file.slice(folder.length).split('/')[0] ?? '');
  };
  const imports = new Map<string, Set<string>>();
  for (const file of files.filter((one) => one.endsWith('.ts'))) {
    const targets = importsOf(file).filter((target) => files.includes(target));
    imports.set(stopOf(file), (imports.get(stopOf(file)) ?? new Set()).union(new Set(targets.map(stopOf))));
  }
  const heights = new Map<string, number>();
  const heightOf = (stop: string, way: ReadonlyArray<string>): number => {
    const known = heights.get(stop);
    if (known !== undefined) return known;
    // Folders may import each other where their files do not: the path ends here.
    const below = [...(imports.get(stop) ?? [])].filter((target) => target !== stop && !way.includes(target));
    const height = 1 + Math.max(0, ...below.map((target) => heightOf(target, [...way, stop])));
    heights.set(stop, height);
    return height;
  };
  return Math.max(0, ...[...imports.keys()].map((stop) => heightOf(stop, [])));
}

const linesOf = (file: string): number => readFileSync(join(ROOT, file), 'utf8').split('\n').length - 1;
const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((all, one) => all + one, 0);
