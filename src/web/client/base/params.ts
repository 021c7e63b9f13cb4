/**
 * State in the address, typed: a page says which parameters it has, and each says how its value is read from text. What
 * cannot be read is the default, which is never written.
 */
export type Param<T> = {
  read(text: string): T | undefined;
  write(value: T): string;
  byDefault: T;
};

export type Params = Readonly<Record<string, Param<unknown>>>;
export type ParamValues<P extends Params> = { readonly [K in keyof P]: P[K] extends Param<infer T> ? T : never };

export function text(byDefault = ""): Param<string> {
  return { read: (value) => value, write: (value) => value, byDefault };
}

export function choice<const T extends string>(values: readonly T[], byDefault: NoInfer<T>): Param<T> {
  return { read: (value) => values.find((one) => one === value), write: (value) => value, byDefault };
}

export function flag(byDefault = false): Param<boolean> {
  return { read: readFlag, write: (value) => (value ? "1" : "0"), byDefault };
}

function readFlag(value: string): boolean | undefined {
  return value === "1" || value === "0" ? value === "1" : undefined;
}

/** Anything that JSON has, for state of several parts; `isValid` judges what an address brings. */
export function json<T>(byDefault: T, isValid: (value: unknown) => value is T): Param<T> {
  const read = (value: string) => {
    try {
      const parsed: unknown = JSON.parse(value);
      return isValid(parsed) ? parsed : undefined;
    } catch {
      return undefined;
    }
  };
  return { read, write: (value) => JSON.stringify(value), byDefault };
}

export function readParams<P extends Params>(params: P, search: URLSearchParams): ParamValues<P> {
  const values = Object.entries(params).map(([name, param]) => {
    const written = search.get(name);
    return [name, (written === null ? undefined : param.read(written)) ?? param.byDefault];
  });
  return Object.fromEntries(values) as ParamValues<P>;
}

/** The query string with the changes, those of other parameters as they were. */
export function writeParams<P extends Params>(
  params: P,
  search: URLSearchParams,
  changes: Partial<ParamValues<P>>,
): URLSearchParams {
  const next = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    const param = params[name];
    if (param === undefined) continue;
    const written = param.write(value);
    if (value === undefined || written === param.write(param.byDefault)) next.delete(name);
    else next.set(name, written);
  }
  return next;
}
