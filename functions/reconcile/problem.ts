// What keeps something from working, and what says that it does?

/** `reason` is the CamelCase word of conditions and events. */
export interface Problem {
  readonly reason: string;
  readonly message: string;
}

export type Reached = { readonly ok: true; readonly message: string } | ({ readonly ok: false } & Problem);
