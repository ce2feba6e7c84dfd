// Which names does every object have that nobody gave it? A look-up by a name that others choose must not find them.
export const INHERITED_NAMES = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf'];
