import type { KqlCases } from "../cases.test-kit.ts";

export const units: KqlCases = {
  "conversions of units": [
    {
      query:
        "print a = convert_angle(1.2, 'Degree', 'Arcminute'), b = round(convert_angle(1.0, 'Revolution', 'Degree'), 9)",
      rows: [{ a: 72, b: 360 }],
      types: { a: "real", b: "real" },
    },
    {
      query:
        "print e = round(convert_energy(1.2, 'Joule', 'BritishThermalUnit'), 15), f = convert_force(1.2, 'Newton', 'Decanewton')",
      rows: [{ e: 0.001137380544376, f: 0.12 }],
    },
    {
      query:
        "print l = round(convert_length(1.2, 'Meter', 'Foot'), 12), m = round(convert_mass(1.2, 'Kilogram', 'Pound'), 12)",
      rows: [{ l: 3.937007874016, m: 2.645547146219 }],
    },
    {
      query:
        "print s = round(convert_speed(1.2, 'MeterPerSecond', 'CentimeterPerHour'), 6), t = round(convert_temperature(1.2, 'Kelvin', 'DegreeCelsius'), 9), v = round(convert_volume(1.2, 'CubicMeter', 'AcreFoot'), 12)",
      rows: [{ s: 432000, t: -271.95, v: 0.0009728568 }],
    },
    {
      query:
        "print a = round(convert_temperature(100.0, 'DegreeCelsius', 'DegreeFahrenheit'), 9), b = round(convert_temperature(32.0, 'DegreeFahrenheit', 'DegreeCelsius'), 9), c = round(convert_length(1.0, 'Mile', 'Kilometer'), 9)",
      rows: [{ a: 212, b: 0, c: 1.609344 }],
    },
    {
      query: "print a = convert_length(1.0, 'Cubit', 'Meter'), b = convert_mass(real(null), 'Gram', 'Tonne')",
      rows: [{ a: null, b: null }],
    },
    {
      query: "print a = convert_mass(1.0, 'SolarMass', 'Kilogram')",
      refused: { code: "invalid_query", message: "SolarMass" },
    },
  ],
};
