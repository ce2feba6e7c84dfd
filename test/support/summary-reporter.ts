// The end of a run's output: the ten slowest files, the reasons of skipped tests, and `N passed, N failed, N skipped`.
import type { Reporter, TestCase, TestModule } from 'vitest/node';

const SLOWEST = 10;
/** The reason in the name of a skipped test or block, as `skip-unless.ts` writes it. */
const REASON = /\(skipped: (.*?)\)(?= > |$)/;
const NO_REASON = 'no reason given';

/** The reporter. CI reads its closing line. A module that failed to load counts as one failure. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandled: ReadonlyArray<unknown>): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const broken = modules.filter((module) => module.state() === 'failed' && !hasFailedTest(module));
    const count = (state: 'passed' | 'failed' | 'skipped') =>
      tests.filter((test) => test.result().state === state).length;
    print([
      ...slowestOf(modules),
      ...skippedOf(tests),
      '',
      `${count('passed')} passed, ${count('failed') + broken.length + unhandled.length} failed, ${count('skipped')} skipped`,
    ]);
  }
}

function slowestOf(modules: ReadonlyArray<TestModule>): ReadonlyArray<string> {
  const timed = modules
    .map((module) => ({ seconds: secondsOf(module), name: `${module.project.name}  ${module.relativeModuleId}` }))
    .sort((one, other) => other.seconds - one.seconds);
  const rows = timed.slice(0, SLOWEST).map(({ seconds, name }) => `${seconds.toFixed(1).padStart(7)} s  ${name}`);
  return ['', `the slowest of ${modules.length} files:`, ...rows];
}

/** The time from the start of the file's worker to the end of its last test and hook. */
function secondsOf(module: TestModule): number {
  const { environmentSetupDuration, prepareDuration, setupDuration, collectDuration, duration } = module.diagnostic();
  return (environmentSetupDuration + prepareDuration + setupDuration + collectDuration + duration) / 1000;
}

function skippedOf(tests: ReadonlyArray<TestCase>): ReadonlyArray<string> {
  const counts = new Map<string, number>();
  for (const test of tests) {
    const result = test.result();
    if (result.state !== 'skipped') continue;
    const reason = result.note ?? REASON.exec(test.fullName)?.[1] ?? NO_REASON;
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  const rows = [...counts].map(([reason, count]) => `skipped ${count}: ${reason}`);
  return rows.length === 0 ? [] : ['', ...rows];
}

function hasFailedTest(module: TestModule): boolean {
  return [...module.children.allTests()].some((test) => test.result().state === 'failed');
}

function print(lines: ReadonlyArray<string>): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}
