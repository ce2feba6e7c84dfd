// Configuration of the image: the same in the Dockerfile and in the layout that `npm run image` writes. A test compares
// them.
import { RELEASE_VERSION } from '../../runtime/config/release.ts';

/** A numeric user, so that `runAsNonRoot` can be checked: the one of distroless images. */
export const USER = 65532;

/** Below WORKDIR. Files of the image are read only: Node.js reads this cache and never writes it. */
export const CACHE_FOLDER = 'compile-cache';

const FOLDER = '/app';

export const CONFIG = {
  User: `${USER}:${USER}`,
  Env: {
    // /nodejs/bin: where the distroless images of Node.js have it.
    PATH: '/usr/local/bin:/nodejs/bin:/usr/bin:/bin',
    NODE_COMPILE_CACHE: `${FOLDER}/${CACHE_FOLDER}`,
    NODE_COMPILE_CACHE_PORTABLE: '1',
  },
  Entrypoint: ['node'],
  WorkingDir: FOLDER,
  Labels: {
    'org.opencontainers.image.title': 'gateway-operator',
    'org.opencontainers.image.description':
      'A serverless, webhook-driven Kubernetes operator for language-model gateways',
    'org.opencontainers.image.licenses': 'Apache-2.0',
    'org.opencontainers.image.version': RELEASE_VERSION,
  },
} as const;
