// The version of this release and its image: one image holds all three functions, and gateways that name none run it
// too.

export const RELEASE_VERSION = '0.1.0';

export const RELEASE_IMAGE = `registry.example.com/gateway-operator:${RELEASE_VERSION}`;
