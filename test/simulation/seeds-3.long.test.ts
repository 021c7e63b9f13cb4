import { testSeeds } from "./seeds.test-kit.ts";

testSeeds(151, 75);
