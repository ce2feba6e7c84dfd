// Is a credential called as no provider calls it? Legal, but nobody would read it (DESIGN 7).

import { didYouMean } from '#core/nearest.ts';
import { toMember } from '#core/rules/secret-entries.ts';
import type { Check } from '../check.ts';
import { InstanceView, toView } from '../spec-views.ts';

const KNOWN = [
  'apiKey',
  'apiBase',
  'apiVersion',
  'organization',
  'awsAccessKeyId',
  'awsSecretAccessKey',
  'awsRegion',
  'vertexCredentials',
  'vertexProject',
  'vertexLocation',
];

export const credentialNames: Check = async ({ object }) =>
  toView(InstanceView, object.spec).models.flatMap(({ modelCredentials }, index) =>
    Object.keys(modelCredentials?.keys ?? {})
      .filter((name) => !KNOWN.includes(name))
      .map((name) => ({
        rule: 'UnknownCredentialName',
        path: `spec.models[${index}].modelCredentials.keys${toMember(name)}`,
        value: undefined,
        message: `no provider reads a credential of this name${didYouMean(name, KNOWN) || `; remove it, or choose among ${KNOWN.join(', ')}`}`,
        effect: 'warn',
      })),
  );
