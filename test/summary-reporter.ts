// How did the run end? One plain line, from the runner's own results: `N passed, N failed, N skipped`.
import type { Reporter, TestModule } from 'vitest/node';

/** Prints why tests were skipped that say so, and the closing line that CI reads. A module that failed to load counts as one failure. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandled: ReadonlyArray<unknown>): void {
    const count = { passed: 0, failed: unhandled.length, skipped: 0 };
    for (const module of modules) {
      const tests = [...module.children.allTests()];
      for (const test of tests) {
        const result = test.result();
        const { state } = result;
        if (state === 'passed' || state === 'failed' || state === 'skipped') count[state] += 1;
        if (result.state === 'skipped' && result.note !== undefined) {
          process.stdout.write(`\nskipped: ${test.fullName}: ${result.note}\n`);
        }
      }
      if (module.state() === 'failed' && !tests.some((test) => test.result().state === 'failed')) count.failed += 1;
    }
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped\n`);
  }
}
