import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { toManifest } from '#crds/generators/crd.ts';
import { kinds } from '#crds/kinds/kinds.ts';
import { generated, stale, withRunbooks, write } from '../generate.ts';

const root = join(import.meta.dirname, '../../..');

test('the committed manifests and documents are what the kinds generate', () => {
  expect(stale(root)).toEqual([]);
});

test('each alert links to its runbook once the documentation has an address, and none does before', () => {
  interface Rules {
    readonly spec: { readonly groups: ReadonlyArray<{ readonly rules: ReadonlyArray<Rule> }> };
  }
  interface Rule {
    readonly alert: string;
    readonly annotations: Readonly<Record<string, string>>;
  }
  const text = generated().get('infra/platforms/kubernetes/alerts.yaml') ?? '';
  const linked = withRunbooks(text, 'https://docs.example.com/alerts');
  const rules = (parse(linked) as Rules).spec.groups.flatMap((group) => group.rules);
  expect(rules.length).toBeGreaterThan(10);
  for (const { alert, annotations } of rules)
    expect(annotations.runbook_url).toBe(`https://docs.example.com/alerts#${alert.toLowerCase()}`);
  expect(text).not.toContain('runbook_url');
  expect(withRunbooks(linked, undefined)).toBe(text);
});

test('a manifest reads back as the definition of its kind', () => {
  const files = generated();
  for (const kind of kinds)
    expect(parse(files.get(`crds/manifests/${kind.plural}.yaml`) ?? '')).toEqual(toManifest(kind));
});

test('a changed, a missing and a stray file are named, and written right', () => {
  const copy = mkdtempSync(join(tmpdir(), 'generate-'));
  try {
    for (const path of generated().keys()) cpSync(join(root, path), join(copy, path), { recursive: true });
    writeFileSync(join(copy, 'crds/manifests/teams.yaml'), 'edited by hand');
    writeFileSync(join(copy, 'crds/manifests/of-no-kind.yaml'), '');
    rmSync(join(copy, 'docs/reference/fields.md'));
    const wrong = ['crds/manifests/teams.yaml', 'docs/reference/fields.md', 'crds/manifests/of-no-kind.yaml'];
    expect(stale(copy)).toEqual(wrong);
    expect(write(copy)).toEqual(wrong);
    expect(stale(copy)).toEqual([]);
    expect(write(copy)).toEqual([]);
  } finally {
    rmSync(copy, { recursive: true });
  }
});

test('everything is generated from nothing', () => {
  const empty = mkdtempSync(join(tmpdir(), 'generate-'));
  try {
    expect(write(empty)).toEqual([...generated().keys()]);
  } finally {
    rmSync(empty, { recursive: true });
  }
});
