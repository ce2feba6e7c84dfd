// What is the next step to a certificate that every API server trusts? Pure: a view and the time in, one action out, or nothing to do.
import type { Millis } from '#core/ports/money.ts';
import type { Certificate, Contents, HookView, OwnSecret, Terms, View } from './view.ts';

/** `why` is a sentence for logs and dry runs. */
export type CertificateAction =
  | { readonly action: 'IssueCertificate'; readonly why: string }
  | {
      readonly action: 'TrustAuthorities';
      readonly hook: HookView;
      readonly authorities: ReadonlyArray<string>;
      readonly why: string;
    }
  | { readonly action: 'WriteCertificate'; readonly contents: Contents; readonly why: string };

export const CERTIFICATE_SIGNS: Readonly<Record<CertificateAction['action'], '+' | '~'>> = {
  IssueCertificate: '+',
  TrustAuthorities: '~',
  WriteCertificate: '~',
};

/** So many CAs at most in a bundle, whatever fails however often. */
const MOST_AUTHORITIES = 8;

/**
 * Trust comes first, then what is trusted: a CA stands in every configuration before the Secret serves what it signed, and
 * stays until no Pod can show that any more. Each step is one write, which may be the last one of this run.
 */
export function plan(view: View, now: Millis, terms: Terms): CertificateAction | undefined {
  const { secret } = view;
  if (secret.state === 'foreign') return undefined;
  if (secret.state === 'absent') return heal(view, NOTHING, now, 'there is none');
  const { serving } = secret;
  if (serving === undefined) return heal(view, secret, now, 'it is damaged, or for another name');
  if (serving.from > now) return heal(view, secret, now, 'it is not valid yet');
  if (serving.until <= now) return heal(view, secret, now, 'it has expired');
  const own = { ...secret, serving };
  return renew(view, own, now) ?? trust(view, own) ?? turn(own, now, terms);
}

/** Renewal is due at two thirds of a life. */
export const dueAt = ({ from, until }: Certificate): Millis => from + ((until - from) * 2) / 3;

const NOTHING: Pick<OwnSecret, 'next' | 'previous'> = { previous: [] };
const isUsable = (certificate: Certificate | undefined, now: Millis): certificate is Certificate =>
  certificate !== undefined && certificate.from <= now && now < dueAt(certificate);

const issue = (why: string): CertificateAction => ({ action: 'IssueCertificate', why });
const write = (contents: Contents, why: string): CertificateAction => ({ action: 'WriteCertificate', contents, why });

/** Nothing works for new Pods: no time to settle. Running Pods may still show the lost one, so what is trusted stays trusted. */
function heal(
  { hooks, fresh }: View,
  own: Pick<OwnSecret, 'next' | 'previous'>,
  now: Millis,
  why: string,
): CertificateAction {
  const serving = isUsable(own.next, now) ? own.next : fresh;
  if (serving === undefined) return issue(why);
  const untold = hooks.find((hook) => !trusts(hook, serving.ca));
  if (untold !== undefined) {
    const authorities = [...knownTo(untold).slice(0, MOST_AUTHORITIES - 1), serving.ca];
    return { action: 'TrustAuthorities', hook: untold, authorities, why: 'a new certificate is about to serve' };
  }
  const known = new Set([...own.previous, ...hooks.flatMap(knownTo)]);
  known.delete(serving.ca);
  const previous = [...known].slice(0, MOST_AUTHORITIES - 2);
  return write({ serving, previous, servingSince: now }, why);
}

type Sound = Contents & OwnSecret;

/** A successor is kept in the Secret before anybody trusts it: so whoever trusts it later trusts something that exists. */
function renew({ fresh }: View, own: Sound, now: Millis): CertificateAction | undefined {
  const { serving, previous, servingSince } = own;
  if (isUsable(own.next, now)) return undefined;
  const why = 'two thirds of its life are over';
  if (dueAt(serving) > now) {
    return own.next && write({ serving, previous, servingSince }, 'its successor was never used, and is none any more');
  }
  return fresh === undefined ? issue(why) : write({ serving, next: fresh, previous, servingSince }, why);
}

function trust({ hooks }: View, own: Sound): CertificateAction | undefined {
  const { serving, next, previous, servingSince, trustedSince } = own;
  const wanted = [...previous, serving.ca, ...(next === undefined ? [] : [next.ca])];
  const hook = hooks.find((one) => !isExactly(one, wanted));
  if (hook === undefined) return undefined;
  if (next !== undefined && trustedSince !== undefined && !trusts(hook, next.ca)) {
    return write({ serving, next, previous, servingSince }, 'its successor is not trusted any more');
  }
  const missing = wanted.some((ca) => !trusts(hook, ca));
  const why = missing ? 'it does not trust every certificate in use' : 'it trusts certificates that are not in use';
  return { action: 'TrustAuthorities', hook, authorities: wanted, why };
}

function turn(own: Sound, now: Millis, { settle, overlap }: Terms): CertificateAction | undefined {
  const { serving, next, previous } = own;
  // A time that is still to come was written by a clock that went wrong: it counts from now.
  const [servingSince, trustedSince] = [own.servingSince, own.trustedSince].map((since) =>
    since !== undefined && since <= now ? since : undefined,
  );
  if (next !== undefined) {
    if (trustedSince === undefined) {
      return write({ serving, next, previous, servingSince, trustedSince: now }, 'its successor is trusted');
    }
    if (now - trustedSince < settle) return undefined;
    const before = [...previous, serving.ca].slice(2 - MOST_AUTHORITIES);
    return write({ serving: next, previous: before, servingSince: now }, 'every API server trusts its successor');
  }
  if (previous.length === 0) return undefined;
  if (servingSince === undefined) return write({ serving, previous, servingSince: now }, 'it serves since now');
  if (now - servingSince < overlap) return undefined;
  return write({ serving, previous: [], servingSince }, 'no Pod shows the one before any more');
}

const trusts = ({ bundles }: HookView, ca: string): boolean => bundles.every((bundle) => bundle.includes(ca));
const knownTo = ({ bundles }: HookView): ReadonlyArray<string> => [...new Set(bundles.flat())];
const isExactly = ({ bundles }: HookView, wanted: ReadonlyArray<string>): boolean =>
  bundles.every((bundle) => bundle.length === wanted.length && wanted.every((ca) => bundle.includes(ca)));
