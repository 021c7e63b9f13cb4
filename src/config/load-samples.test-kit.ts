export type Sample = {
  /** Two accepted texts and what they mean; the TOML form when it is not that text in quotes. */
  one: [text: string, value: unknown, toml?: string];
  two: [text: string, value: unknown, toml?: string];
  /** Texts that are refused, and TOML values. */
  bad: string[];
  badToml?: string[];
};

export const integer = (one: number, two: number, min: number, max: number): Sample => ({
  one: [String(one), one, String(one)],
  two: [String(two), two],
  bad: [String(min - 1), String(max + 1), "many", "1.5", "0x10", "1e3", "+5", "5 rows", "9007199254740993"],
  badToml: ["true", "1.5", "[1]", "{ a = 1 }", String(max + 1), "2024-01-01"],
});
export const bytes = (one: number, unit: [string, number], min: number, max: number): Sample => ({
  ...integer(one, one + 1, min, max),
  two: [unit[0], unit[1]],
});
export const path = (name: string): Sample => ({
  one: ["/a/b", "/a/b"],
  two: [`~/${name}`, `/home/u/${name}`],
  bad: ["a\0b"],
  badToml: ["1", "true", "[]"],
});
