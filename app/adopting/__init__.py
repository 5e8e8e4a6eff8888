"""Finished work of an earlier script, taken over: looked at first, then settled like our own.

`finding` says which file is of which partition, `looking` what each line is, `taking` writes and
settles what may be taken, `telling` says it to people.
"""

from app.adopting.finding import Source as Source
from app.adopting.finding import sources_of as sources_of
from app.adopting.looking import Look as Look
from app.adopting.looking import Looked as Looked
from app.adopting.looking import look_at as look_at
from app.adopting.taking import Taken as Taken
from app.adopting.taking import take_over as take_over
from app.adopting.telling import told_look as told_look
from app.adopting.telling import told_taken as told_taken
