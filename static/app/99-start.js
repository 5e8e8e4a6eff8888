// The page begins, when all that was joined before has been read.
showSwitches();
showFilter(true);
showNeeds();
showNoteSwitch();
showClocks();
showSteppers();
open();
