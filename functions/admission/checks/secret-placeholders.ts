// Does an entry of the key's Secret hold something that looks like a placeholder and is none? It would stay as it is written (DESIGN 10).
import type { Finding } from '#core/finding.ts';
import type { Check } from '../check.ts';
import { KeyView, toView } from '../spec-views.ts';

const PLACEHOLDERS = [`\${key}`, `\${baseURL}`];
/** `${anything}`, and `$key` or `$baseURL` in any spelling of theirs. */
const LIKE_ONE = /\$\{[^}]*\}?|\$(?:key|base_?url)\b/gi;

export const secretPlaceholders: Check = ({ object }) =>
  Object.entries(toView(KeyView, object.spec).secretTemplate?.entries ?? {}).flatMap(([name, value]): Finding[] => {
    const wrong = value?.match(LIKE_ONE)?.find((found) => !PLACEHOLDERS.includes(found));
    if (wrong === undefined) return [];
    const message = `${JSON.stringify(wrong)} is not replaced by anything and stands in the Secret as it is; write ${PLACEHOLDERS.join(' or ')} where the value is meant`;
    const path = `spec.secretTemplate.entries[${JSON.stringify(name)}]`;
    return [{ rule: 'UnknownPlaceholder', path, value, message, effect: 'warn' }];
  });
