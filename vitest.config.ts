import { join } from 'node:path';
import { defineConfig, type TestProjectConfiguration } from 'vitest/config';

/** A waiting test fails after this time: something hangs. Not a measure of speed on any machine. */
const WAITING = { timeout: 30_000 };

/** Node.js's compile cache of the processes that tests start. `npm ci` removes it. */
const COMPILED = join(import.meta.dirname, 'node_modules/.cache/compile');

/** Laws of memory and time, which collect all garbage hundreds of times: each has a small heap of its own. */
const LAWS = [
  'functions/gateway/test/{size-law,memory-law,meter}.test.ts',
  'functions/gateway/test/wire/responses/stream-end.test.ts',
  'test/{gateway/client-values,hostile/small-pieces}.test.ts',
];

interface Suite {
  readonly name: string;
  readonly files: ReadonlyArray<string>;
  /** Files of other rows that do more here: both clusters, all random runs, each right, or each order. */
  readonly also?: ReadonlyArray<string>;
  readonly when: 'npm test' | 'TEST_ALL' | 'TEST_DOCS' | 'TEST_CAMPAIGNS';
}

/**
 * What runs when. `npm test` is for a newcomer. `TEST_ALL=1 npm test`, which CI runs, is everything that fits its 15
 * minutes. `npm run docs:test` applies the samples and runs the commands of the guides. `npm run campaigns` searches
 * orders of events for minutes, kills parts of the whole stack, and has hostile servers, large objects, many instances,
 * a million ledger rows, one fault after the other under load, faults and the walk on other engines, the time of every
 * regular expression, the laws for every shape, the unpacked image, a real server that speaks S3, a gateway behind an
 * Ingress or a Gateway, and all runs of random tests. It also runs on both clusters what CI runs on one. A file belongs
 * to the first row that names it. All but `laws` and `unit` start real parts: PostgreSQL, Redis, kubectl, workerd, a
 * real kube-apiserver.
 */
const SUITES: ReadonlyArray<Suite> = [
  { name: 'laws', when: 'npm test', files: LAWS },
  { name: 'unit', when: 'npm test', files: ['{crds,functions,infra,test}/**/!(*.world).test.ts'] },
  {
    name: 'docs',
    when: 'TEST_DOCS',
    files: [
      'test/{admission/samples,e2e/guides,e2e/pages,e2e/back-up-and-restore}.world.test.ts',
      'docs/.vitepress/test/browser.world.test.ts',
    ],
  },
  {
    name: 'campaigns',
    when: 'TEST_CAMPAIGNS',
    files: [
      'test/ledger/{schedules,many-instances,single-faults,engines,quota}.world.test.ts',
      'test/{e2e/faults,e2e/walk-engines,e2e/ends,admission/memory}.world.test.ts',
      'test/reconcile/laws/*.world.test.ts',
      'test/hostile/*.world.test.ts',
      'infra/adapters/{postgres,redis}/test/hostile.world.test.ts',
      'infra/adapters/archive/test/bucket.world.test.ts',
      'infra/adapters/postgres/test/{plans,growth,large-claims,portions}.world.test.ts',
      'test/platforms/{image,outside}.world.test.ts',
      'test/rules/regular-expressions.world.test.ts',
    ],
    also: [
      'test/{e2e/keys,e2e/walk,admission/kubectl,admission/down,crds/*,reconcile/access}.world.test.ts',
      'test/apiserver/**/random-*.world.test.ts',
      'test/platforms/uninstall.world.test.ts',
      'infra/adapters/redis/test/counter-store.world.test.ts',
      'infra/adapters/postgres/test/ledger-{rows,database}.world.test.ts',
    ],
  },
  {
    name: 'smoke',
    when: 'npm test',
    files: [
      'test/e2e/{walk,limits}.world.test.ts',
      'test/admission/kubectl.world.test.ts',
      'infra/adapters/postgres/test/{ledger-rows,registry}.world.test.ts',
      'infra/platforms/local/**/postgres.world.test.ts',
    ],
  },
  { name: 'adapters', when: 'TEST_ALL', files: ['infra/{adapters,platforms}/**/*.world.test.ts'] },
  { name: 'apiserver', when: 'TEST_ALL', files: ['{infra,test}/apiserver/**/*.world.test.ts'] },
  { name: 'site', when: 'TEST_ALL', files: ['docs/.vitepress/test/*.world.test.ts'] },
  { name: 'platforms', when: 'TEST_ALL', files: ['test/platforms/**/*.world.test.ts'] },
  { name: 'chaos', when: 'TEST_ALL', files: ['test/ledger/**/*.world.test.ts'] },
  { name: 'clusters', when: 'TEST_ALL', files: ['**/*.world.test.ts'] },
];

export default defineConfig({
  test: {
    reporters: ['default', './test/support/summary-reporter.ts'],
    globalSetup: './test/support/shared-servers.ts',
    projects: SUITES.filter(({ when }) => when === 'npm test' || process.env[when]).map(projectOf),
  },
});

function projectOf({ name, files, also = [] }: Suite): TestProjectConfiguration {
  const before = SUITES.slice(
    0,
    SUITES.findIndex((suite) => suite.name === name),
  );
  return {
    test: {
      name,
      include: [...files, ...also],
      exclude: [...before.flatMap((suite) => suite.files), 'node_modules/**', 'dist/**'],
      setupFiles: ['./test/reconcile/search-after-each.ts'],
      expect: { poll: WAITING },
      // One group after the other, or each would be tested on what the other leaves of the machine.
      ...(name === 'unit' || name === 'laws'
        ? {
            // Modules hold constants only: each is loaded once for all who test it, which takes a third of the time.
            isolate: files === LAWS,
            maxWorkers: '100%',
            sequence: { groupOrder: 1 },
            testTimeout: 60_000,
            hookTimeout: 60_000,
          }
        : {
            // They mostly wait for each other's processes and for timeouts: four fill two cores.
            maxWorkers: 4,
            env: {
              // kube-apiserver, etcd and kubectl collect garbage less often: a sixth less work.
              GOGC: '400',
              // Each local stack compiles the same hundreds of TypeScript files: the first one does it for all.
              NODE_COMPILE_CACHE: COMPILED,
            },
            sequence: { groupOrder: 2 },
            testTimeout: 120_000,
            hookTimeout: 180_000,
          }),
    },
  };
}
