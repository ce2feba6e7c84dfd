// What kubectl creates and changes.
import { expect, test } from 'vitest';
import { configMap, widget } from '../widgets.ts';
import type { KubectlHarness } from './harness.ts';

export function writingCases(kubectl: () => KubectlHarness): void {
  test('apply creates, then leaves an unchanged file alone, then updates three ways and prunes removed fields', async () => {
    expect(await kubectl().must('apply -f -', widget('three', { color: 'red', alias: 'abc', tags: ['a'] }))).toBe(
      'widget.kubectl.example.com/three created',
    );
    const before = await kubectl().get('wd three');
    expect(await kubectl().must('apply -f -', widget('three', { color: 'red', alias: 'abc', tags: ['a'] }))).toBe(
      'widget.kubectl.example.com/three unchanged',
    );
    expect((await kubectl().get('wd three')).metadata.resourceVersion).toBe(before.metadata.resourceVersion);
    await kubectl().must(`patch wd three --type=merge -p '{"spec":{"size":9}}'`);
    expect(await kubectl().must('apply -f -', widget('three', { color: 'red', tags: ['b', 'c'] }))).toBe(
      'widget.kubectl.example.com/three configured',
    );
    expect(await kubectl().get('wd three')).toMatchObject({
      spec: { color: 'red', size: 9, tags: ['b', 'c'] },
      metadata: { generation: 3 },
    });
    expect((await kubectl().get('wd three')).spec).not.toHaveProperty('alias');
  });

  test('apply of a core kind merges its lists by their keys', async () => {
    const deployment = (env: object[]) => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'merged' },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: 'm' } },
        template: {
          metadata: { labels: { app: 'm' } },
          spec: { containers: [{ name: 'c', image: 'example.com/x:1', env }] },
        },
      },
    });
    await kubectl().must(
      'apply -f -',
      deployment([
        { name: 'A', value: '1' },
        { name: 'B', value: '2' },
      ]),
    );
    await kubectl().must(
      `patch deploy merged -p '{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"C","value":"3"}]}]}}}}'`,
    );
    await kubectl().must('apply -f -', deployment([{ name: 'A', value: '9' }]));
    const merged = await kubectl().must(
      `get deploy merged -o 'jsonpath={range .spec.template.spec.containers[0].env[*]}{.name}={.value} {end}'`,
    );
    expect(merged.trim().split(' ').sort()).toEqual(['A=9', 'C=3']);
    await kubectl().must('delete deploy merged');
  });

  test('a merge patch that changes nothing is no write', async () => {
    await kubectl().must('apply -f -', widget('still', { color: 'red', size: 5 }));
    const before = await kubectl().get('wd still');
    expect(await kubectl().must(`patch wd still --type=merge -p '{"spec":{"size":5}}'`)).toContain(
      'patched (no change)',
    );
    expect((await kubectl().get('wd still')).metadata).toEqual(before.metadata);
  });

  test('JSON patches apply in order, and a failed test refuses them all', async () => {
    await kubectl().must('apply -f -', widget('json', { color: 'red', tags: ['a', 'b'] }));
    await kubectl().must(
      `patch wd json --type=json -p '[{"op":"remove","path":"/spec/tags/0"},{"op":"add","path":"/spec/tags/-","value":"z"}]'`,
    );
    expect((await kubectl().get('wd json')).spec).toMatchObject({ tags: ['b', 'z'] });
    const refused = await kubectl().run(
      `patch wd json --type=json -p '[{"op":"replace","path":"/spec/size","value":9},{"op":"test","path":"/spec/color","value":"blue"}]'`,
    );
    expect(refused.code).toBe(1);
    expect((await kubectl().get('wd json')).spec).toMatchObject({ size: 3 });
  });

  test('a strategic merge patch is for core kinds only', async () => {
    await kubectl().must('apply -f -', widget('strategic'));
    const refused = await kubectl().run(`patch wd strategic --type=strategic -p '{"spec":{"size":5}}'`);
    expect(refused.err).toContain(
      'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
    );
  });

  test('the status is written by /status alone, and only the spec counts as a generation', async () => {
    await kubectl().must('apply -f -', widget('split'));
    await kubectl().must(`patch wd split --type=merge -p '{"status":{"phase":"Lost"}}'`);
    expect(await kubectl().get('wd split')).not.toHaveProperty('status');
    await kubectl().must(
      `patch wd split --subresource=status --type=merge -p '{"status":{"phase":"Done"},"spec":{"size":9},"metadata":{"labels":{"a":"b"}}}'`,
    );
    expect(await kubectl().get('wd split')).toMatchObject({
      status: { phase: 'Done' },
      spec: { size: 3 },
      metadata: { generation: 1 },
    });
    expect((await kubectl().get('wd split')).metadata).not.toHaveProperty('labels');
    await kubectl().must('label wd split a=b');
    expect((await kubectl().get('wd split')).metadata).toMatchObject({ generation: 1, labels: { a: 'b' } });
    await kubectl().must(`patch wd split --type=merge -p '{"spec":{"size":4}}'`);
    expect(await kubectl().get('wd split')).toMatchObject({ metadata: { generation: 2 }, status: { phase: 'Done' } });
    expect(JSON.parse(await kubectl().must('get wd split --subresource=status -o json'))).toMatchObject({
      status: { phase: 'Done' },
    });
  });

  test('the schema refuses with the field, the value and the rule', async () => {
    const refused = await kubectl().run('apply -f -', widget('bad', { color: 'purple', size: 99, alias: 'BAD!' }));
    expect(refused.code).toBe(1);
    for (const words of [
      'The Widget "bad" is invalid:',
      'spec.color: Unsupported value: "purple": supported values: "red", "green", "blue"',
      'spec.size: Invalid value: 99: spec.size in body should be less than or equal to 10',
      `spec.alias: Invalid value: "BAD!": spec.alias in body should match '^[a-z]+$'`,
    ]) {
      expect(refused.err).toContain(words);
    }
    const ruled = await kubectl().run('apply -f -', widget('bad', { color: 'blue', size: 1 }));
    expect(ruled.err).toContain(
      'The Widget "bad" is invalid: spec: Invalid value: "object": blue widgets are bigger than one',
    );
    await kubectl().must('apply -f -', widget('fixed'));
    const changed = await kubectl().run(`patch wd fixed --type=merge -p '{"spec":{"color":"green"}}'`);
    expect(changed.err).toContain('color is immutable');
    expect((await kubectl().run('create -f -', widget('Bad_Name'))).err).toContain(
      'metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must consist of',
    );
    expect((await kubectl().run(`label wd fixed 'a=b c'`)).err).toContain(
      'a valid label must be an empty string or consist of alphanumeric characters',
    );
  });

  test('an unknown field is refused, warned about or ignored, as kubectl asks', async () => {
    const unknown = widget('unknown', { color: 'red', foo: 1 });
    const strict = await kubectl().run('create -f -', unknown);
    expect(strict.err).toContain(
      'Widget in version "v1alpha1" cannot be handled as a Widget: strict decoding error: unknown field "spec.foo"',
    );
    const warned = await kubectl().run('create --validate=warn -f -', unknown);
    expect(warned).toMatchObject({ code: 0, err: 'Warning: unknown field "spec.foo"\n' });
    expect((await kubectl().get('wd unknown')).spec).toEqual({ color: 'red', size: 3 });
    expect(await kubectl().run('apply --validate=ignore -f -', unknown)).toMatchObject({ code: 0 });
    expect((await kubectl().run(`patch cm kube --type=merge -p '{"dat":{}}'`)).code).toBe(1);
  });

  test('replace needs the version it saw, and loses against a newer one', async () => {
    await kubectl().must('apply -f -', widget('locked'));
    const seen = await kubectl().get('wd locked');
    await kubectl().must('label wd locked faster=yes');
    const late = await kubectl().run('replace -f -', seen);
    expect(late.err).toContain(
      'Operation cannot be fulfilled on widgets.kubectl.example.com "locked": the object has been modified; please apply your changes to the latest version and try again',
    );
    await kubectl().must('replace -f -', await kubectl().get('wd locked'));
    await kubectl().must('replace --force -f -', widget('locked', { color: 'blue', size: 2 }));
    const { resourceVersion } = seen.metadata;
    expect(
      (await kubectl().run(`patch wd locked --type=merge -p '{"metadata":{"resourceVersion":"${resourceVersion}"}}'`))
        .err,
    ).toContain('the object has been modified');
  });

  test('dry run on the server validates everything and stores nothing', async () => {
    expect(await kubectl().must('apply --dry-run=server -f -', widget('dry'))).toBe(
      'widget.kubectl.example.com/dry created (server dry run)',
    );
    expect((await kubectl().run('get wd dry')).code).toBe(1);
    expect((await kubectl().run('apply --dry-run=server -f -', widget('dry', { color: 'purple' }))).err).toContain(
      'Unsupported value',
    );
    await kubectl().must('apply -f -', widget('dry'));
    const before = await kubectl().get('wd dry');
    expect(await kubectl().must('label wd dry a=b --dry-run=server')).toContain('labeled (server dry run)');
    expect(await kubectl().must('delete wd dry --dry-run=server')).toContain('deleted (server dry run)');
    expect(await kubectl().get('wd dry')).toEqual(before);
    const difference = await kubectl().run('diff -f -', widget('dry', { color: 'red', size: 8 }));
    expect(difference.code).toBe(1);
    expect(difference.out).toMatch(/-\s+size: 3\n\+\s+size: 8/);
  });

  test('create secret sends protobuf; stringData becomes data', async () => {
    await kubectl().must('create secret generic plain --from-literal=key=value');
    expect(await kubectl().get('secret plain')).toMatchObject({
      type: 'Opaque',
      data: { key: Buffer.from('value').toString('base64') },
    });
    await kubectl().must('apply -f -', {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'texts' },
      data: { a: 'eA==' },
      stringData: { b: 'ü' },
    });
    const stored = await kubectl().get('secret texts');
    expect(stored).toMatchObject({ data: { a: 'eA==', b: Buffer.from('ü').toString('base64') } });
    expect(stored).not.toHaveProperty('stringData');
    expect((await kubectl().run(`patch secret texts -p '{"type":"other"}'`)).err).toContain(
      'type: Invalid value: "other": field is immutable',
    );
    expect((await kubectl().run(`patch secret texts -p '{"data":{"a b":"eA=="}}'`)).err).toContain(
      'a valid config key must consist of',
    );
    expect(await kubectl().must(`get secret plain -o 'jsonpath={.data.key}'`)).toBe('dmFsdWU=');
  });

  test('generateName makes a name, and names are taken once', async () => {
    const made = await kubectl().must('create -f -', {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { generateName: 'made-' },
    });
    expect(made).toMatch(/^configmap\/made-[a-z0-9]{5} created$/);
    await kubectl().must('create configmap once');
    expect((await kubectl().run('create configmap once')).err).toContain('configmaps "once" already exists');
  });

  test('kubectl makes, lists and deletes core kinds that nothing runs', async () => {
    for (const args of [
      'create serviceaccount made',
      'create role made --verb=get --resource=secrets',
      'create rolebinding made --role=made --serviceaccount=default:made',
      'create clusterrole made --verb=get --resource=secrets',
      'create clusterrolebinding made --clusterrole=made --user=alice',
      'create deployment made --image=example.com/x:1',
      `create cronjob made --image=example.com/x:1 '--schedule=0 0 1 1 1'`,
      'create job made --image=example.com/x:1',
      'create poddisruptionbudget made --selector=app=made --min-available=1',
      'create service clusterip made --tcp=80:8080',
    ]) {
      expect(await kubectl().must(args)).toContain('made created');
    }
    await kubectl().must('create -f -', {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'made' },
      spec: { holderIdentity: 'me' },
    });
    expect(await kubectl().must('get deploy,cronjob,job,pdb,svc,lease -o name')).toContain('deployment.apps/made');
    expect(await kubectl().must('get pods -o name -l nobody=here')).toBe('');
    await kubectl().must('delete clusterrole,clusterrolebinding made');
    await kubectl().must('delete deploy,cronjob,job,pdb,svc,lease,sa,role,rolebinding made');
  });

  test('server-side apply takes over by force, leaves an unchanged file alone and removes what is left out', async () => {
    const both = configMap('owned', { k: 'v', l: 'w' }, { labels: { a: 'b' } });
    expect(await kubectl().must('apply --server-side -f -', both)).toBe('configmap/owned serverside-applied');
    await kubectl().must(`patch cm owned --type=merge -p '{"data":{"k":"other"}}'`);
    await kubectl().must('apply --server-side --force-conflicts -f -', both);
    const { metadata, data } = await kubectl().get('cm owned');
    expect(data).toEqual({ k: 'v', l: 'w' });
    await kubectl().must('apply --server-side -f -', both);
    expect((await kubectl().get('cm owned')).metadata.resourceVersion).toBe(metadata.resourceVersion);
    await kubectl().must('apply --server-side -f -', configMap('owned', { k: 'v' }));
    expect(await kubectl().get('cm owned')).toMatchObject({ data: { k: 'v' } });
    expect((await kubectl().get('cm owned')).data).not.toHaveProperty('l');
    expect((await kubectl().get('cm owned')).metadata).not.toHaveProperty('labels');
  });

  test('server-side apply works for custom kinds', async () => {
    await kubectl().must('apply --server-side -f -', widget('applied', { color: 'red', size: 4 }));
    await kubectl().must(
      'apply --server-side --field-manager=other -f -',
      widget('applied', { color: 'red', alias: 'x' }),
    );
    expect((await kubectl().get('wd applied')).spec).toEqual({ color: 'red', size: 4, alias: 'x' });
    await kubectl().must('apply --server-side -f -', widget('applied', { color: 'red' }));
    expect((await kubectl().get('wd applied')).spec).toEqual({ color: 'red', size: 3, alias: 'x' });
    const unknown = await kubectl().run('apply --server-side -f -', widget('applied', { color: 'red', foo: 1 }));
    expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining('spec.foo') });
  });
}
