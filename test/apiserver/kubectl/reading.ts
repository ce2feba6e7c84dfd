// What kubectl shows.
import { expect, test } from 'vitest';
import { configMap, widget } from '../widgets.ts';
import type { KubectlHarness } from './harness.ts';

export function readingCases(kubectl: () => KubectlHarness): void {
  test('discovery tells kubectl the names, short names, categories and verbs of every kind', async () => {
    const resources = await kubectl().must('api-resources --api-group=kubectl.example.com -o wide');
    expect(resources).toMatch(
      /widgets +wd +kubectl\.example\.com\/v1alpha1 +true +Widget +delete,deletecollection,get,list,patch,create,update,watch +toys/,
    );
    const versions = (await kubectl().must('api-versions')).split('\n');
    expect(versions).toEqual(expect.arrayContaining(['v1', 'apps/v1', 'batch/v1', 'kubectl.example.com/v1alpha1']));
    expect(JSON.parse(await kubectl().must('get --raw /apis/kubectl.example.com'))).toMatchObject({
      kind: 'APIGroup',
      preferredVersion: { groupVersion: 'kubectl.example.com/v1alpha1' },
    });
    expect(JSON.parse(await kubectl().must('get --raw /api/v1')).resources).toContainEqual(
      expect.objectContaining({ name: 'namespaces/status', kind: 'Namespace', verbs: ['get', 'patch', 'update'] }),
    );
  });

  test('get shows the printer columns of a custom kind, by its short name and its category too', async () => {
    await kubectl().must('apply -f -', widget('shown', { color: 'red', size: 4 }));
    expect(await kubectl().must('get wd shown')).toMatch(/^NAME +COLOR +READY +AGE\nshown +red +\d+s$/);
    expect(await kubectl().must('get widgets shown -o wide')).toMatch(
      /^NAME +COLOR +READY +SIZE +AGE\nshown +red +4 +\d+s$/,
    );
    expect(await kubectl().must('get toys -o name')).toContain('widget.kubectl.example.com/shown');
    await kubectl().must(
      `patch wd shown --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'`,
    );
    expect(await kubectl().must('get wd shown')).toMatch(/shown +red +True/);
  });

  test('get of the core kinds has the columns that people know', async () => {
    await kubectl().must('create configmap columns --from-literal=a=b');
    expect(await kubectl().must('get cm columns')).toMatch(/^NAME +DATA +AGE\ncolumns +1 +\d+s$/);
    await kubectl().must('create secret generic columns --from-literal=a=b');
    expect(await kubectl().must('get secret columns')).toMatch(/^NAME +TYPE +DATA +AGE\ncolumns +Opaque +1 +\d+s$/);
    expect(await kubectl().must('get ns default')).toMatch(/^NAME +STATUS +AGE\ndefault +Active /);
  });

  test('label selectors choose by value, by set and by absence', async () => {
    await kubectl().must(
      'apply -f -',
      configMap('l1', {}, { labels: { app: 'a', tier: 'x' } }),
      configMap('l2', {}, { labels: { app: 'b' } }),
    );
    const names = async (selector: string) => (await kubectl().must(`get cm -l '${selector}' -o name`)).split('\n');
    expect(await names('app=a')).toEqual(['configmap/l1']);
    expect(await names('app in (a,b)')).toEqual(['configmap/l1', 'configmap/l2']);
    expect(await names('app,!tier')).toEqual(['configmap/l2']);
    expect(await names('app,app!=a')).toEqual(['configmap/l2']);
    expect((await kubectl().run(`get cm -l 'app in'`)).err).toContain('unable to parse requirement');
  });

  test('field selectors choose by name and by the selectable fields of a CRD, and nothing else', async () => {
    await kubectl().must('apply -f -', widget('field', { color: 'green' }));
    expect(await kubectl().must('get wd --field-selector spec.color=green -o name')).toBe(
      'widget.kubectl.example.com/field',
    );
    expect(await kubectl().must('get wd --field-selector metadata.name=field,spec.color!=red -o name')).toBe(
      'widget.kubectl.example.com/field',
    );
    const refused = await kubectl().run('get wd --field-selector spec.size=3');
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('field label not supported: spec.size') });
    expect((await kubectl().run('get cm --field-selector data.a=b')).err).toContain(
      '"data.a" is not a known field selector',
    );
  });

  test('describe shows an object with its events', async () => {
    await kubectl().must('apply -f -', widget('described'));
    const { metadata } = await kubectl().get('wd described');
    const involvedObject = {
      apiVersion: 'kubectl.example.com/v1alpha1',
      kind: 'Widget',
      name: 'described',
      namespace: 'default',
      uid: metadata.uid,
    };
    const now = new Date().toISOString().replace(/\.\d+/, '');
    await kubectl().must('create -f -', {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { generateName: 'described-' },
      involvedObject,
      reason: 'Painted',
      message: 'it is red now',
      type: 'Normal',
      source: { component: 'painter' },
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    });
    const text = await kubectl().must('describe wd described');
    expect(text).toMatch(/Name: +described/);
    expect(text).toMatch(/Normal +Painted +\d+s +painter +it is red now/);
    expect(await kubectl().must('events --for widget/described')).toContain('it is red now');
    expect(await kubectl().must('get events --field-selector involvedObject.name=described')).toMatch(
      /^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n\d+s +Normal +Painted +widget\/described +it is red now$/,
    );
  });

  test('explain reads the schema of custom and core kinds', async () => {
    expect(await kubectl().must('explain wd.spec.color')).toMatch(/FIELD: color <string>[\s\S]*The paint\./);
    expect(await kubectl().must('explain secret.stringData')).toMatch(/FIELD: stringData <map\[string\]string>/);
    expect((await kubectl().run('explain wd.spec.nope')).err).toContain('field "nope" does not exist');
  });

  test('a long list comes in pages', async () => {
    for (const i of [1, 2, 3, 4, 5])
      await kubectl().must('create -f -', configMap(`page-${i}`, {}, { labels: { page: 'yes' } }));
    const first = JSON.parse(
      await kubectl().must(`get --raw '/api/v1/namespaces/default/configmaps?limit=2&labelSelector=page'`),
    );
    expect(first.items.map((one: { metadata: { name: string } }) => one.metadata.name)).toEqual(['page-1', 'page-2']);
    const token = encodeURIComponent(first.metadata.continue);
    const rest = JSON.parse(
      await kubectl().must(
        `get --raw '/api/v1/namespaces/default/configmaps?limit=9&labelSelector=page&continue=${token}'`,
      ),
    );
    expect(rest.items.map((one: { metadata: { name: string } }) => one.metadata.name)).toEqual([
      'page-3',
      'page-4',
      'page-5',
    ]);
    expect(rest.metadata.continue).toBeUndefined();
    expect((await kubectl().must('get cm -l page --chunk-size=2 -o name')).split('\n')).toHaveLength(5);
    expect((await kubectl().run(`get --raw '/api/v1/configmaps?limit=2&continue=abc'`)).err).toContain(
      'continue key is not valid',
    );
  });

  test('what is not there is NotFound, by name, kind and path', async () => {
    expect((await kubectl().run('get wd nobody')).err).toBe(
      'Error from server (NotFound): widgets.kubectl.example.com "nobody" not found\n',
    );
    expect((await kubectl().run('get cm nobody')).err).toBe(
      'Error from server (NotFound): configmaps "nobody" not found\n',
    );
    expect((await kubectl().run('get nothing')).err).toContain(`the server doesn't have a resource type "nothing"`);
    expect((await kubectl().run('get --raw /apis/kubectl.example.com/v1alpha1/nothing')).err).toContain(
      'the server could not find the requested resource',
    );
  });

  test('auth can-i says yes to the holder of the token', async () => {
    expect(await kubectl().must('auth can-i create widgets')).toBe('yes');
    expect(await kubectl().must(`auth can-i '*' '*'`)).toBe('yes');
    expect(await kubectl().must('auth whoami')).toContain('system:masters');
  });

  test('version, health and paths are served', async () => {
    expect(JSON.parse(await kubectl().must('version -o json')).serverVersion).toMatchObject({
      major: '1',
      gitVersion: expect.stringMatching(/^v1\./),
    });
    expect(await kubectl().must('get --raw /readyz')).toBe('ok');
    expect(JSON.parse(await kubectl().must('get --raw /')).paths).toContain('/apis/apps/v1');
  });
}
