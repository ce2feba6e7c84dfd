// Do two entries of an instance share one credential Secret? (SPEC 2.2, rule 2)
import { SHARED_CREDENTIALS_ALLOWED, SHARED_CREDENTIALS_ANNOTATION } from '#crds/group.ts';
import type { Finding } from '../finding.ts';

interface Entry {
  readonly identifier?: string | undefined;
  readonly modelCredentials?: { readonly nameRef?: string | undefined } | undefined;
}

/** `allowed` is what the annotation says that lets them. */
export function sharedCredentials(models: ReadonlyArray<Entry>, allowed: string | undefined): Finding[] {
  if (allowed === SHARED_CREDENTIALS_ALLOWED) return [];
  const entries = models.flatMap(({ identifier = '', modelCredentials }, index) =>
    modelCredentials?.nameRef === undefined ? [] : [{ identifier, index, secret: modelCredentials.nameRef }],
  );
  if (new Set(entries.map(({ secret }) => secret)).size === entries.length) return [];
  // By identifier, not by position: an old mistake stays the same mistake when the list is reordered.
  entries.sort((left, right) => (left.identifier < right.identifier ? -1 : left.identifier > right.identifier ? 1 : 0));
  const first = new Map<string, string>();
  const findings = entries.flatMap(({ identifier, index, secret }): Array<Finding & { index: number }> => {
    const owner = first.get(secret);
    if (owner === undefined) {
      first.set(secret, identifier);
      return [];
    }
    const message =
      `is the Secret of entry ${JSON.stringify(owner)} already; give each entry a Secret of its own, or allow sharing ` +
      `with the annotation ${SHARED_CREDENTIALS_ANNOTATION}: "${SHARED_CREDENTIALS_ALLOWED}"`;
    const path = `spec.models[${index}].modelCredentials.nameRef`;
    return [{ index, rule: 'SharedCredentials', path, value: secret, message, effect: 'refuse' }];
  });
  return findings.sort((left, right) => left.index - right.index).map(({ index: _index, ...finding }) => finding);
}
