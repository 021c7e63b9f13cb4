import { intervalText, parametersIn, type ParameterState, type ParameterValue } from "./parameters.ts";
import type { Variable } from "./document.ts";
import type { Bounds } from "./time-range.ts";

/** What was chosen, by the name of the variable, as the address has it. */
export type ChosenValues = Readonly<Record<string, ParameterValue>>;

/** The values to choose from: those of a query are there once it has run. */
export type VariableOptions = { values: readonly string[] } | { isWaiting: true } | { error: Error };

export function isMulti(variable: Variable): boolean {
  return "multi" in variable && variable.multi === true;
}

export function titleOf({ label, name }: Variable): string {
  return label === undefined || label === "" ? name : label;
}

/** What an address brings; anything else in it is left out. */
export function readChosen(text: string): ChosenValues {
  if (text === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
    return Object.fromEntries(Object.entries(value).filter(([, one]) => isChosen(one))) as ChosenValues;
  } catch {
    return {};
  }
}

function isChosen(value: unknown): value is ParameterValue {
  return typeof value === "string" || (Array.isArray(value) && value.every((one) => typeof one === "string"));
}

/**
 * The value of a variable: what was chosen, else its default, else the first of its values. Undefined while those are not
 * there. Of a variable with `multi` it is a list, otherwise one text.
 */
export function valueOf(
  variable: Variable,
  chosen: ChosenValues,
  options: VariableOptions,
): ParameterValue | undefined {
  const own = chosen[variable.name] ?? variable.default;
  if (own !== undefined) return asWanted(variable, own);
  if (variable.type === "text") return "";
  if (!("values" in options)) return undefined;
  const [first] = options.values;
  return isMulti(variable) ? (first === undefined ? [] : [first]) : first;
}

function asWanted(variable: Variable, value: ParameterValue): ParameterValue {
  if (isMulti(variable)) return typeof value === "string" ? [value] : value;
  return typeof value === "string" ? value : (value[0] ?? "");
}

/** The ends of the range, which every query may name. A variable called `from` has the name to itself. */
export function rangeParameters({ from, to }: Bounds): Map<string, ParameterState> {
  return new Map([
    ["from", { value: from }],
    ["to", { value: to }],
  ]);
}

/** What queries that name the variable get. */
export function stateOf(
  variable: Variable,
  value: ParameterValue | undefined,
  options: VariableOptions,
  { fromMs, toMs }: Bounds,
): ParameterState {
  if (value !== undefined) {
    const isInterval = variable.type === "interval" && typeof value === "string";
    return { value: isInterval ? intervalText(value, toMs - fromMs) : value };
  }
  const title = titleOf(variable);
  if ("error" in options) return { problem: `The values of ${title} could not be read: ${options.error.message}` };
  if ("values" in options) return { problem: `${title} has no values.` };
  return { waitsFor: title };
}

/**
 * The variables in an order in which each comes after those that its query names, and those whose queries wait for each
 * other in a circle: none of these can ever run.
 */
export function inOrderOfUse(variables: readonly Variable[]): {
  ordered: readonly Variable[];
  circular: ReadonlySet<Variable>;
} {
  const byName = new Map(variables.map((variable) => [variable.name.toLowerCase(), variable]));
  const ordered = new Set<Variable>();
  const circular = new Set<Variable>();
  const path: Variable[] = [];
  const visit = (variable: Variable): void => {
    if (ordered.has(variable)) return;
    const circleFrom = path.indexOf(variable);
    if (circleFrom !== -1) {
      for (const one of path.slice(circleFrom)) circular.add(one);
      return;
    }
    path.push(variable);
    const names =
      variable.type === "query" && variable.query.language === "sql" ? parametersIn(variable.query.text) : [];
    for (const name of names) {
      const used = byName.get(name);
      if (used !== undefined) visit(used);
    }
    path.pop();
    ordered.add(variable);
  };
  for (const variable of variables) visit(variable);
  return { ordered: [...ordered], circular };
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
const INTERVAL = /^(?:auto|[1-9]\d{0,8}(?:ms|s|m|h|d|w))$/;

/** What the server would refuse; undefined for a good variable. `names` are those of all variables. */
export function problemOfVariable(variable: Variable, names: readonly string[]): string | undefined {
  const { name } = variable;
  if (!NAME.test(name)) return "Use ASCII letters, digits and _; do not start with a digit.";
  if (names.filter((one) => one.toLowerCase() === name.toLowerCase()).length > 1) {
    return "Another variable has this name.";
  }
  if (/^(?:from|to)$/i.test(name)) return `$${name.toLowerCase()} is reserved for the time range: choose another name.`;
  if (variable.type === "query" && variable.query.text.trim() === "") return "It has no query yet.";
  if (variable.type === "interval") {
    const wrong = [...variable.values, variable.default ?? "auto"].find((value) => !INTERVAL.test(value));
    if (wrong !== undefined) return `“${wrong}” is not an interval: use 30s, 5m, 1h, 7d or auto.`;
  }
  return undefined;
}
