// Is every annotation that somebody can ask something with in the reference, and judged where it can be misread?
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ASKED_BY_ANNOTATION, WRITTEN_BY_US } from '#crds/annotations.ts';
import * as group from '#crds/group.ts';
import { kinds } from '#crds/kinds.ts';
import { toReference } from '#crds/reference.ts';
import { judgeAnnotations } from './annotations.ts';

const asked = Object.values(ASKED_BY_ANNOTATION)
  .flat()
  .map(({ annotation }) => annotation);

test('every annotation that people write is in the reference of the fields', () => {
  const names = Object.entries(group).flatMap(([name, value]) => (name.endsWith('_ANNOTATION') ? [value] : []));
  expect([...asked, ...WRITTEN_BY_US].sort()).toEqual(names.sort());
  for (const annotation of asked) expect(toReference()).toContain(`\`${annotation}\``);
});

test('the pages on keys, deployment and admission name no annotation of ours that is none', () => {
  const known: readonly string[] = [
    ...asked,
    ...WRITTEN_BY_US,
    group.OWNED_LABEL,
    group.RETAINED_LABEL,
    group.FINALIZER,
  ];
  const ours = /\b(?:instance\.|auth\.)?gateway-operator\.dev\/[a-z-]+(?![a-z0-9-])/g;
  for (const page of ['keys.md', 'deploy.md', 'admission.md']) {
    const text = readFileSync(join(import.meta.dirname, '../../../docs', page), 'utf8');
    const unknown = [...text.matchAll(ours)].map(([name]) => name).filter((name) => !known.includes(name));
    expect({ page, unknown }).toEqual({ page, unknown: [] });
  }
});

test('an annotation that asks for something unclear is refused in words; one that only allows something is not', () => {
  // `shared-credentials` allows with one word and means nothing with others; `import` stands on a Secret.
  const unjudged: readonly string[] = [group.SHARED_CREDENTIALS_ANNOTATION];
  for (const { kind } of kinds) {
    for (const { annotation } of ASKED_BY_ANNOTATION[kind].filter((one) => !unjudged.includes(one.annotation))) {
      const [finding] = judgeAnnotations(kind, (name) => (name === annotation ? ' ' : undefined));
      expect(finding).toMatchObject({ path: `metadata.annotations["${annotation}"]`, effect: 'refuse' });
      expect(finding?.message).toMatch(/; (write|remove)/);
    }
  }
});
