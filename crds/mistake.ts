// What is wrong with an object, and where?

/** `path` is where (`spec.models[0].identifier`), `message` is `what is wrong; what to do`. */
export interface Mistake {
  readonly rule: string;
  readonly path: string;
  /** What stands there; undefined where nothing does. */
  readonly value: unknown;
  readonly message: string;
}
