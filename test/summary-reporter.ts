// How did the run end? One plain line, from the runner's own results: `N passed, N failed, N skipped`.
import type { Reporter, TestModule } from 'vitest/node';

/** Prints the closing line that CI reads. A module that failed to load counts as one failure. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandled: ReadonlyArray<unknown>): void {
    const count = { passed: 0, failed: unhandled.length, skipped: 0 };
    for (const module of modules) {
      const tests = [...module.children.allTests()];
      for (const test of tests) {
        const { state } = test.result();
        if (state === 'passed' || state === 'failed' || state === 'skipped') count[state] += 1;
      }
      if (module.state() === 'failed' && !tests.some((test) => test.result().state === 'failed')) count.failed += 1;
    }
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped\n`);
  }
}
