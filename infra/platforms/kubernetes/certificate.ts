// The certificate of the process: the mounted one, and its successor as soon as the kubelet has mounted that.
import { readFileSync, watchFile } from 'node:fs';
import { reasonOf } from '#core/failure/error-text.ts';
import type { Log } from '#core/ports/telemetry.ts';
import type { RunningServer, Tls } from '../../runtime/node/serve.ts';

/** Milliseconds between two reads of the file. A mounted Secret is a link that changes, which no event reports. */
const LOOK_EVERY = 2_000;

export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

export function readCertificate({ cert, key }: CertificateFiles): Tls {
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
}

/**
 * Replaces the certificate while the process runs. A certificate that cannot be used is logged, and the old one stays.
 */
export function followCertificate(files: CertificateFiles, served: Pick<RunningServer, 'renew'>, log: Log): void {
  let shown = '';
  for (const file of Object.values(files)) {
    watchFile(file, { interval: LOOK_EVERY, persistent: false }, () => {
      try {
        const next = readCertificate(files);
        // Both files are read, and change together.
        if (shown === next.cert) return;
        served.renew(next);
        shown = next.cert;
        log.info('certificate renewed', { file });
      } catch (error) {
        log.warn('certificate not renewed', { file, why: reasonOf(error) });
      }
    });
  }
}
