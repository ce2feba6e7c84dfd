import { defineConfig } from 'vitest/config';

/** What a test asks for again until it is so says by its time-out that something hangs, on any machine. */
const WAITING = { timeout: 30_000 };

// Two projects: `unit` is what `npm run check` runs (fast, no servers but loopback ones made inside a test);
// `world` starts the real parts (PostgreSQL, kubectl, workerd, a real API server).
export default defineConfig({
  test: {
    reporters: ['default', './test/summary-reporter.ts'],
    projects: [
      {
        test: {
          name: 'unit',
          setupFiles: ['./test/reconcile/search-after-each.ts'],
          include: ['crds/**/*.test.ts', 'functions/**/*.test.ts', 'infra/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: ['**/*.world.test.ts', 'node_modules/**', 'dist/**'],
          // Modules hold constants only: one may be read once for all who test it, which takes a third of the time.
          isolate: false,
          maxWorkers: '100%',
          sequence: { groupOrder: 1 },
          // Says that something hangs, not how fast it is: these machines are shared.
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: { poll: WAITING },
        },
      },
      {
        test: {
          name: 'world',
          setupFiles: ['./test/reconcile/search-after-each.ts'],
          include: ['**/*.world.test.ts'],
          exclude: ['node_modules/**', 'dist/**'],
          testTimeout: 120_000,
          hookTimeout: 180_000,
          expect: { poll: WAITING },
          // Many of them mostly wait; more than two at once would be about the machine, not about the code.
          maxWorkers: 2,
          // One project after the other, or each would be tested on what the other leaves of the machine.
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
