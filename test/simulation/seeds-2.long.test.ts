import { testSeeds } from "./seeds.test-kit.ts";

testSeeds(76, 75);
