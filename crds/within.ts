// How long is a text, as Kubernetes counts?

/** Whether a text has at most so many characters as Kubernetes counts them: code points, of which there are never more than UTF-16 units. */
export const isWithin = (max: number, value: string): boolean =>
  value.length <= max || (value.length <= 2 * max && [...value].length <= max);
