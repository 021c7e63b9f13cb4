import { expr, sql, type Expr } from "../plan/expression.ts";
import type { Call } from "../scope.ts";
import { literal, num } from "../values/coerce.ts";
import { arg, fn, type FunctionRule, type FunctionTable } from "./table.ts";

/** How many of the basic unit a unit is; undefined: its size is not what a standard says, and the reference does not say it. */
type Units = Readonly<Record<string, number | undefined>>;

const PREFIXES = {
  nano: 1e-9,
  micro: 1e-6,
  milli: 1e-3,
  centi: 1e-2,
  deci: 1e-1,
  deca: 10,
  hecto: 100,
  kilo: 1e3,
  mega: 1e6,
  giga: 1e9,
  tera: 1e12,
} as const;

/** A unit with prefixes: `Meter` as `Kilometer`. */
function prefixed(name: string, size: number, prefixes: readonly (keyof typeof PREFIXES)[]): Units {
  const own = prefixes.map((prefix): [string, number] => {
    return [`${prefix.charAt(0).toUpperCase()}${prefix.slice(1)}${name.toLowerCase()}`, size * PREFIXES[prefix]];
  });
  return { [name]: size, ...Object.fromEntries(own) };
}

function unknown(...names: string[]): Units {
  return Object.fromEntries(names.map((name) => [name, undefined]));
}

const INCH = 0.0254;
const FOOT = 0.3048;
const POUND = 0.45359237;
const GRAVITY = 9.80665;
const ASTRONOMICAL_UNIT = 149_597_870_700;
const US_SURVEY_FOOT = 1200 / 3937;
const US_GALLON = 3.785411784e-3;
const IMPERIAL_GALLON = 4.54609e-3;
const BTU = 1055.05585262;

const ANGLES: Units = {
  ...prefixed("Degree", 1, ["nano", "micro", "milli"]),
  ...prefixed("Radian", 180 / Math.PI, ["nano", "micro", "milli", "centi", "deci"]),
  Arcminute: 1 / 60,
  Arcsecond: 1 / 3600,
  Gradian: 0.9,
  NatoMil: 360 / 6400,
  Revolution: 360,
  ...unknown("Tilt"),
};

const ENERGIES: Units = {
  ...prefixed("Joule", 1, ["milli", "kilo", "mega", "giga"]),
  WattHour: 3600,
  KilowattHour: 3.6e6,
  MegawattHour: 3.6e9,
  GigawattHour: 3.6e12,
  TerawattHour: 3.6e15,
  WattDay: 86_400,
  KilowattDay: 8.64e7,
  MegawattDay: 8.64e10,
  GigawattDay: 8.64e13,
  TerawattDay: 8.64e16,
  BritishThermalUnit: BTU,
  KilobritishThermalUnit: BTU * 1e3,
  MegabritishThermalUnit: BTU * 1e6,
  GigabritishThermalUnit: BTU * 1e9,
  Erg: 1e-7,
  FootPound: FOOT * POUND * GRAVITY,
  ...unknown("Calorie", "Kilocalorie", "Megacalorie", "DecathermEc", "DecathermImperial", "DecathermUs", "ThermEc"),
  ...unknown("ThermImperial", "ThermUs", "HorsepowerHour", "ElectronVolt", "KiloelectronVolt", "MegaelectronVolt"),
  ...unknown("GigaelectronVolt", "TeraelectronVolt"),
};

const FORCES: Units = {
  ...prefixed("Newton", 1, ["micro", "milli", "deca", "kilo", "mega"]),
  Dyn: 1e-5,
  KilogramForce: GRAVITY,
  KiloPond: GRAVITY,
  TonneForce: GRAVITY * 1e3,
  PoundForce: POUND * GRAVITY,
  KilopoundForce: POUND * GRAVITY * 1e3,
  OunceForce: (POUND * GRAVITY) / 16,
  ShortTonForce: POUND * GRAVITY * 2000,
  Poundal: POUND * FOOT,
};

const LENGTHS: Units = {
  ...prefixed("Meter", 1, ["nano", "micro", "milli", "centi", "deci", "deca", "hecto", "kilo"]),
  Angstrom: 1e-10,
  AstronomicalUnit: ASTRONOMICAL_UNIT,
  Chain: FOOT * 66,
  DataMile: FOOT * 6000,
  DtpPica: INCH / 6,
  DtpPoint: INCH / 72,
  Fathom: FOOT * 6,
  Foot: FOOT,
  Hand: INCH * 4,
  Inch: INCH,
  LightYear: 9_460_730_472_580_800,
  KilolightYear: 9_460_730_472_580_800e3,
  MegalightYear: 9_460_730_472_580_800e6,
  Microinch: INCH * 1e-6,
  Mil: INCH * 1e-3,
  Mile: FOOT * 5280,
  NauticalMile: 1852,
  Parsec: (ASTRONOMICAL_UNIT * 648_000) / Math.PI,
  Kiloparsec: ((ASTRONOMICAL_UNIT * 648_000) / Math.PI) * 1e3,
  Megaparsec: ((ASTRONOMICAL_UNIT * 648_000) / Math.PI) * 1e6,
  Shackle: FOOT * 90,
  Twip: INCH / 1440,
  UsSurveyFoot: US_SURVEY_FOOT,
  Yard: FOOT * 3,
  ...unknown("PrinterPica", "PrinterPoint", "SolarRadius"),
};

const MASSES: Units = {
  ...prefixed("Gram", 1e-3, ["nano", "micro", "milli", "centi", "deci", "deca", "hecto", "kilo"]),
  ...prefixed("Tonne", 1e3, ["kilo", "mega"]),
  ...prefixed("Pound", POUND, ["kilo", "mega"]),
  Grain: POUND / 7000,
  Ounce: POUND / 16,
  Stone: POUND * 14,
  ShortHundredweight: POUND * 100,
  LongHundredweight: POUND * 112,
  ShortTon: POUND * 2000,
  LongTon: POUND * 2240,
  Slug: (POUND * GRAVITY) / FOOT,
  ...unknown("EarthMass", "SolarMass"),
};

/** Of each length, the times that it is told per. */
const SPEEDS: Units = Object.fromEntries([
  ["Knot", 1852 / 3600] as [string, number],
  ...["Centimeter", "Foot", "Inch", "Meter", "Millimeter", "UsSurveyFoot", "Yard", "Kilometer"].flatMap((name) => {
    return perTime(name, ["Hour", "Minute", "Second"]);
  }),
  ...perTime("Mile", ["Hour"]),
  ...["Decimeter", "Micrometer", "Nanometer"].flatMap((name) => perTime(name, ["Minute", "Second"])),
]);

function perTime(name: string, times: readonly ("Hour" | "Minute" | "Second")[]): [string, number][] {
  const seconds = { Hour: 3600, Minute: 60, Second: 1 };
  return times.map((time) => [`${name}Per${time}`, (LENGTHS[name] ?? NaN) / seconds[time]]);
}

const CUBIC_FOOT = FOOT ** 3;

const VOLUMES: Units = {
  ...prefixed("Liter", 1e-3, ["micro", "milli", "centi", "deci", "deca", "hecto", "kilo", "mega"]),
  CubicMeter: 1,
  CubicKilometer: 1e9,
  CubicHectometer: 1e6,
  CubicDecimeter: 1e-3,
  CubicCentimeter: 1e-6,
  CubicMillimeter: 1e-9,
  CubicMicrometer: 1e-18,
  HectocubicMeter: 100,
  KilocubicMeter: 1e3,
  CubicInch: INCH ** 3,
  CubicFoot: CUBIC_FOOT,
  CubicYard: CUBIC_FOOT * 27,
  CubicMile: (FOOT * 5280) ** 3,
  HectocubicFoot: CUBIC_FOOT * 100,
  KilocubicFoot: CUBIC_FOOT * 1e3,
  MegacubicFoot: CUBIC_FOOT * 1e6,
  BoardFoot: CUBIC_FOOT / 12,
  // As the example of the reference has it.
  AcreFoot: 1 / 0.000810714,
  UsGallon: US_GALLON,
  DeciusGallon: US_GALLON / 10,
  DecausGallon: US_GALLON * 10,
  HectousGallon: US_GALLON * 100,
  KilousGallon: US_GALLON * 1e3,
  MegausGallon: US_GALLON * 1e6,
  UsQuart: US_GALLON / 4,
  UsPint: US_GALLON / 8,
  UsCustomaryCup: US_GALLON / 16,
  UsOunce: US_GALLON / 128,
  UsTablespoon: US_GALLON / 256,
  UsTeaspoon: US_GALLON / 768,
  UsLegalCup: 2.4e-4,
  UsBeerBarrel: US_GALLON * 31,
  OilBarrel: US_GALLON * 42,
  ImperialGallon: IMPERIAL_GALLON,
  KiloimperialGallon: IMPERIAL_GALLON * 1e3,
  MegaimperialGallon: IMPERIAL_GALLON * 1e6,
  ImperialPint: IMPERIAL_GALLON / 8,
  ImperialOunce: IMPERIAL_GALLON / 160,
  ImperialBeerBarrel: IMPERIAL_GALLON * 36,
  ...unknown("AuTablespoon", "UkTablespoon", "MetricCup", "MetricTeaspoon"),
};

/** Degrees of each scale: how many there are to a kelvin, and where zero kelvin is. */
const SCALES: Readonly<Record<string, readonly [number, number] | undefined>> = {
  Kelvin: [1, 0],
  DegreeCelsius: [1, -273.15],
  MillidegreeCelsius: [1000, -273_150],
  DegreeFahrenheit: [1.8, -459.67],
  DegreeRankine: [1.8, 0],
  DegreeReaumur: [0.8, -273.15 * 0.8],
  DegreeRoemer: [21 / 40, 7.5 - (273.15 * 21) / 40],
  DegreeNewton: [0.33, -273.15 * 0.33],
  DegreeDelisle: [-1.5, 100 * 1.5 + 273.15 * 1.5],
  SolarTemperature: undefined,
};

/** Conversions between units of measure. */
export const UNITS: FunctionTable = {
  convert_angle: between(ANGLES),
  convert_energy: between(ENERGIES),
  convert_force: between(FORCES),
  convert_length: between(LENGTHS),
  convert_mass: between(MASSES),
  convert_speed: between(SPEEDS),
  convert_temperature: fn((args, call) => {
    const units = [1, 2].map((i) => unitOf(SCALES, arg(args, i), call));
    const [from, to] = units;
    if (from === undefined || to === undefined) return literal("real", null);
    const kelvins = sql`(${num(arg(args, 0), "real")} - ${double(from[1])}) / ${double(from[0])}`;
    return expr("real", sql`${kelvins} * ${double(to[0])} + ${double(to[1])}`);
  }),
  convert_volume: between(VOLUMES),
};

function between(units: Units): FunctionRule {
  return fn((args, call) => {
    const [from, to] = [1, 2].map((i) => unitOf(units, arg(args, i), call));
    if (from === undefined || to === undefined) return literal("real", null);
    return expr("real", sql`${num(arg(args, 0), "real")} * ${double(from)} / ${double(to)}`);
  });
}

function double(value: number): Expr {
  return literal("real", value);
}

/** What is known of the unit that an argument names; undefined where there is no such unit. */
function unitOf<T>(units: Readonly<Record<string, T | undefined>>, { constant }: Expr, call: Call): T | undefined {
  if (typeof constant !== "string") throw call.refuse(`${call.name}() takes the names of units as constants`);
  if (!Object.hasOwn(units, constant)) return undefined;
  const found = units[constant];
  if (found === undefined) throw call.refuse(`${call.name}() does not know how large the unit ${constant} is`);
  return found;
}
