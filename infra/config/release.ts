// Which image belongs to this release? One image holds all three functions; gateways that name none run it too.

export const RELEASE_IMAGE = 'registry.example.com/gateway-operator:0.1.0';
