import { expect, test } from 'vitest';
import { withSamples } from '../samples.ts';

const SAMPLE = `# part: azure
kind: Secret
# end of part
---
kind: GatewayInstance
spec:
  models:
    # part: azure
    - identifier: azure
      modelName: gpt
    # end of part
    - identifier: other
`;
const page = (marker: string) => `Before.\n\n<!-- sample: ${marker} -->\n<!-- end of sample -->\n\nAfter.\n`;
const shown = (marker: string) => withSamples('page.md', page(marker), () => SAMPLE);

test('a page shows a sample without the markers of its parts', () => {
  expect(shown('all.yaml')).toBe(`Before.

<!-- sample: all.yaml -->
\`\`\`yaml
kind: Secret
---
kind: GatewayInstance
spec:
  models:
    - identifier: azure
      modelName: gpt
    - identifier: other
\`\`\`
<!-- end of sample -->

After.
`);
});

test('a page shows the parts of one name as documents, without their indentation', () => {
  expect(shown('all.yaml azure')).toContain(
    '```yaml\nkind: Secret\n---\n- identifier: azure\n  modelName: gpt\n```\n<!-- end',
  );
});

test('a page that has its samples stays as it is, and an old copy is replaced', () => {
  for (const marker of ['all.yaml', 'all.yaml azure']) {
    const now = shown(marker);
    expect(withSamples('page.md', now, () => SAMPLE)).toBe(now);
    expect(withSamples('page.md', now.replace('azure\n', 'old\n'), () => SAMPLE)).toBe(now);
  }
});

test('a part that does not exist and a marker without its end are errors', () => {
  expect(() => shown('all.yaml bedrock')).toThrow('page.md: docs/samples/all.yaml has no `# part: bedrock`');
  const open = '<!-- sample: all.yaml -->\n';
  expect(() => withSamples('page.md', open + page('all.yaml'), () => SAMPLE)).toThrow('needs an');
  expect(() => withSamples('page.md', '<!-- end of sample -->\n', () => SAMPLE)).toThrow('needs an');
});
