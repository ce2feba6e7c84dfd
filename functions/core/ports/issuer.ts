// Who makes certificates, and who says whether one is good?
import type { Millis } from './money.ts';

/** PEM texts. `ca` signed `cert`, of which `key` is the private key. */
export interface Pair {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** When a certificate holds. */
export interface Validity {
  readonly from: Millis;
  readonly until: Millis;
}

export interface Order extends Validity {
  /** The common name of the CA: what people see who look at it. */
  readonly authority: string;
  /** DNS names and IP addresses of the server. */
  readonly names: ReadonlyArray<string>;
}

export interface Issuer {
  /**
   * A new CA and a serving certificate that it signed. The private key of the CA is never given away: it has signed its one certificate and
   * is gone, so trusting the CA is trusting that certificate and nothing else. Times are cut to whole seconds.
   */
  issue(order: Order): Promise<Pair>;
  /** When the whole pair holds; undefined where it is none: something is no PEM, the CA did not sign it, the key is another's, a name is missing. */
  inspect(pair: Pair, names: ReadonlyArray<string>): Validity | undefined;
  /** The certificates of a bundle, one PEM text each, in one form; what is none is left out. */
  split(bundle: string): ReadonlyArray<string>;
}
