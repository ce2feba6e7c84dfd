// What kubectl sees while things change.
import { expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { configMap, widget } from '../widgets.ts';
import type { KubectlHarness } from './harness.ts';

export function watchingCases(kubectl: () => KubectlHarness): void {
  test('get -w shows each change as a row, and a selector lets objects come and go', async () => {
    await kubectl().must('create -f -', configMap('there', {}, { labels: { seen: 'yes' } }));
    const watch = kubectl().follow('get cm -l seen=yes -w --output-watch-events --no-headers');
    // It has listed: what happens from now on it sees.
    await eventually(watch.lines, atLeast(1));
    await kubectl().must('create -f -', configMap('seen'));
    await kubectl().must('label cm seen seen=yes');
    await kubectl().must('annotate cm seen a=b');
    await kubectl().must('label cm seen seen=no --overwrite');
    await kubectl().must('label cm seen seen=yes --overwrite');
    await kubectl().must('delete cm seen');
    const seen = await eventually(watch.lines, atLeast(6));
    expect(seen.map((line) => line.split(/\s+/).slice(0, 2))).toEqual([
      ['ADDED', 'there'],
      ['ADDED', 'seen'],
      ['MODIFIED', 'seen'],
      ['DELETED', 'seen'],
      ['ADDED', 'seen'],
      ['DELETED', 'seen'],
    ]);
    await watch.end();
    await kubectl().must('delete cm there');
  });

  test('get -w of a custom kind keeps its columns', async () => {
    await kubectl().must('apply -f -', widget('watched'));
    const watch = kubectl().follow('get wd watched -w');
    await eventually(watch.lines, atLeast(2));
    await kubectl().must(
      `patch wd watched --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'`,
    );
    expect(await eventually(watch.lines, atLeast(3))).toEqual([
      expect.stringMatching(/^NAME +COLOR +READY +AGE$/),
      expect.stringMatching(/^watched +red +\d+s$/),
      expect.stringMatching(/^watched +red +True +\d+s$/),
    ]);
    await watch.end();
  });

  test('wait returns when a condition, a value or the end has come, and says when it has not', async () => {
    await kubectl().must('apply -f -', widget('waited'));
    const ready = kubectl().follow('wait --for=condition=Ready wd/waited --timeout=60s -v=6');
    const valued = kubectl().follow(`wait '--for=jsonpath={.status.phase}=Done' wd/waited --timeout=60s -v=6`);
    for (const waiting of [ready, valued]) await watches(waiting);
    await kubectl().must(
      `patch wd waited --subresource=status --type=merge -p '{"status":{"phase":"Done","conditions":[{"type":"Ready","status":"True"}]}}'`,
    );
    for (const waiting of [ready, valued]) await isMet(waiting);
    expect((await kubectl().run('wait --for=condition=Never wd/waited --timeout=1s')).err).toContain(
      'timed out waiting for the condition',
    );
    const deleted = kubectl().follow('wait --for=delete wd/waited --timeout=60s -v=6');
    await watches(deleted);
    await kubectl().must('delete wd waited');
    await isMet(deleted);
  });

  test('a watch resumes at the resourceVersion that it is given, and ends when its time is up', async () => {
    const before = JSON.parse(await kubectl().must('get --raw /api/v1/namespaces/default/configmaps?limit=1'));
    await kubectl().must('create -f -', configMap('resumed'));
    await kubectl().must('delete cm resumed');
    const path = `/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=1&resourceVersion=${before.metadata.resourceVersion}`;
    const events = (await kubectl().must(`get --raw '${path}'`)).split('\n').map((line) => JSON.parse(line));
    expect(events.map(({ type, object }) => [type, object.metadata.name])).toEqual([
      ['ADDED', 'resumed'],
      ['DELETED', 'resumed'],
    ]);
  });

  test('a watch with initial events sends what there is, then a bookmark that says so', async () => {
    await kubectl().must('create -f -', configMap('initial', {}, { labels: { initial: 'yes' } }));
    const path =
      '/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=1&labelSelector=initial&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan';
    const events = (await kubectl().must(`get --raw '${path}'`)).split('\n').map((line) => JSON.parse(line));
    expect(events[0]).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'initial' } } });
    expect(events[1]).toMatchObject({
      type: 'BOOKMARK',
      object: { metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } } },
    });
  });
}

const atLeast = (count: number) => (lines: readonly string[]) => lines.length >= count;

type WatchOutput = ReturnType<KubectlHarness['follow']>;

/** It has looked, and found that there is something to wait for. */
const watches = (waiting: WatchOutput) => eventually(waiting.errors, (errors) => errors.includes('watch=true'));

const isMet = async (waiting: WatchOutput) => {
  await eventually(waiting.lines, ([line]) => line === 'widget.kubectl.example.com/waited condition met');
  await waiting.end();
};
